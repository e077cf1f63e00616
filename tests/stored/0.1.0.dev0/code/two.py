def two(rows, limit):
    found = {}
    for row in rows:
        if row.size > limit and row.name not in found:
            found[row.name] = row.size * 2 + len(row.parts)
    return sorted(found.items(), key=lambda item: -item[1])
