"""Words for people, in English and Chinese: one catalogue for each language, shared by all surfaces of dibs."""

from __future__ import annotations

import json
import os
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


def say(key: str, /, **values: object) -> str:
    """The text of a key in the chosen language, with its values filled in.

    Keys are written out where they are said: a test compares them with the catalogues, both ways.
    """
    return catalogue(_chosen)[key].format(**values)


def knows(key: str) -> bool:
    """Whether there is a text of that key, for keys that are put together."""
    return key in catalogue(_chosen)
