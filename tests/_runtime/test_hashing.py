import numpy as np

from treedot._runtime.hashing import GOLDEN, mix, mix64, mix_words


def test_the_stream_is_that_of_the_published_generator():
    """The first words with the key 1234567, as other implementations print them."""
    words = [mix(1234567 + i * GOLDEN) for i in range(1, 6)]
    assert words == [
        6457827717110365317,
        3203168211198807973,
        9817491932198370423,
        4593380528125082431,
        16408922859458223821,
    ]


def test_integers_arrays_and_compiled_code_agree():
    numbers = [0, 1, 2**32 - 1, 2**63, 2**64 - 1, *np.random.default_rng(0).integers(0, 2**62, 100).tolist()]
    with np.errstate(over="ignore"):
        compiled = [int(mix64(np.uint64(number))) for number in numbers]
    assert [mix(number) for number in numbers] == compiled
    assert mix_words(np.array(numbers, np.uint64)).tolist() == compiled


def test_integers_count_modulo_two_to_the_64():
    assert mix(2**64 + 5) == mix(5) == mix(5 - 2**64)
