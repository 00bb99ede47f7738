"""The table of a quiz night. See README.md for what a team is."""

from functools import cmp_to_key


def compare(one: dict, other: dict) -> int:
    """Negative when `one` stands before `other`, positive when behind, 0 when they are level."""
    if one["points"] != other["points"]:
        return -1 if one["points"] > other["points"] else 1
    if one["seconds"] == other["seconds"]:
        return 0
    if one["seconds"] is None or other["seconds"] is None:
        return -1 if other["seconds"] is None else 1
    return -1 if one["seconds"] > other["seconds"] else 1


def standings(teams: list[dict]) -> list[dict]:
    """The teams in order, level ones in the order in which they were given."""
    return sorted(teams, key=cmp_to_key(compare))


def places(teams: list[dict]) -> list[tuple[str, int]]:
    """Name and place of each team, in order. Level teams share a place."""
    found = []
    table = standings(teams)
    for index, team in enumerate(table):
        level = index > 0 and compare(table[index - 1], team) == 0
        found.append((team["name"], found[-1][1] if level else index + 1))
    return found


def enter(table: list[dict], team: dict) -> list[dict]:
    """A table with a further team in it, behind the ones it is level with."""
    index = len(table)
    while index > 0 and compare(team, table[index - 1]) < 0:
        index -= 1
    return [*table[:index], team, *table[index:]]


def leaders(teams: list[dict], count: int) -> list[dict]:
    """The first `count` teams, and whoever is level with the last of them."""
    table = standings(teams)
    while 0 < count < len(table) and compare(table[count - 1], table[count]) == 0:
        count += 1
    return table[:count]
