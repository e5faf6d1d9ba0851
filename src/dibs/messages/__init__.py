"""Words for people, in English and Chinese: one catalogue for each language, shared by all surfaces of dibs."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from functools import cache

LANGUAGES = ("en", "zh")
_FOLDER = os.path.dirname(__file__)
_chosen = "en"


def language() -> str:
    """The language `say` speaks now."""
    return _chosen


def speak(name: str) -> None:
    """Choose the language `say` speaks in this process: "en" or "zh", or a locale such as zh_CN.UTF-8."""
    global _chosen
    _chosen = closest(name)


def closest(name: str) -> str:
    """The language dibs has that is closest to a locale or language tag.

    >>> closest("zh_CN.UTF-8"), closest("zh-Hans"), closest("de_DE"), closest("C")
    ('zh', 'zh', 'en', 'en')
    """
    return "zh" if name.strip().lower().startswith("zh") else "en"


def speaks(name: str) -> bool:
    """Whether dibs has the language of a locale or language tag.

    >>> speaks("zh_CN.UTF-8"), speaks("EN"), speaks("de"), speaks("english")
    (True, True, False, False)
    """
    return re.split(r"[-_.@]", name.strip().lower())[0] in LANGUAGES


def asked_for(environment: Mapping[str, str], configured: str | None = None) -> str:
    """The language a user asks for: DIBS_LANG, else a configured one, else that of the locale.

    >>> asked_for({"DIBS_LANG": "zh", "LANG": "en_US.UTF-8"}), asked_for({"LANG": "zh_CN.UTF-8"}), asked_for({})
    ('zh', 'zh', 'en')
    """
    given = environment.get("DIBS_LANG") or configured
    for variable in ("LC_ALL", "LC_MESSAGES", "LANG"):
        given = given or environment.get(variable)
    return closest(given or "en")


@cache
def catalogue(name: str) -> dict[str, str]:
    """All texts of a language, by key."""
    with open(os.path.join(_FOLDER, f"{name}.json"), encoding="utf-8") as file:
        texts: dict[str, str] = json.load(file)
    return texts


class Number(int):
    """A whole number that chooses between words: `{count} {count:job|jobs}`. Other formats are those of numbers.

    >>> [f"{Number(n):,} {Number(n):job|jobs}" for n in (0, 1, 5_000)]
    ['0 jobs', '1 job', '5,000 jobs']
    """

    def __format__(self, form: str) -> str:
        one, choice, many = form.partition("|")
        if choice:
            return one if self == 1 else many
        return int.__format__(self, form)


def say(key: str, /, **values: object) -> str:
    """The text of a key in the chosen language, with its values filled in.

    Keys are written out where they are said: a test compares them with the catalogues, both ways.
    """
    told = {name: Number(value) if type(value) is int else value for name, value in values.items()}
    return catalogue(_chosen)[key].format(**told)


def knows(key: str) -> bool:
    """Whether there is a text of that key, for keys that are put together."""
    return key in catalogue(_chosen)
