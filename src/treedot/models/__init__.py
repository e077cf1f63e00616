"""Learn from trees."""
