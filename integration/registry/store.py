"""Subjects, versions, ids, compatibility levels and modes, with Confluent's error codes."""

import threading
from dataclasses import dataclass
from typing import Any

from . import avro

LEVELS = ["NONE", *(kind + suffix for kind in ("BACKWARD", "FORWARD", "FULL") for suffix in ("", "_TRANSITIVE"))]
MODES = ["READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT"]
GLOBAL = ""


class Refused(Exception):
    """An answer other than 200."""

    def __init__(self, code: int, message: str):
        super().__init__(message)
        self.code = code
        self.status = code if code < 1000 else code // 100


@dataclass
class Version:
    """One version of a subject."""

    number: int
    id: int
    deleted: bool = False


class Store:
    """All in memory; one lock, as requests come on several threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self._ids: dict[str, int] = {}
        self._texts: dict[int, str] = {}
        self._subjects: dict[str, list[Version]] = {}
        self._levels = {GLOBAL: "BACKWARD"}
        self._modes = {GLOBAL: "READWRITE"}

    # ------------------------------------------------------------ schemas
    def register(self, subject: str, body: dict) -> dict:
        """Add a version, or find the one that is there."""
        text, schema = _schema(body)
        versions = self._subjects.get(subject, [])
        known = self._ids.get(avro.identity(text))
        for version in versions:
            if version.id == known and not version.deleted:
                return {"id": version.id}
        mode = self._mode(subject)
        if mode.startswith("READONLY"):
            raise Refused(42205, f"Subject {subject} is in read-only mode")
        level = self._level(subject)
        earlier = [avro.parse(self._texts[version.id]) for version in versions if not version.deleted]
        if objections := avro.incompatibilities(level, schema, earlier):
            raise Refused(409, f'Schema being registered is incompatible with an earlier schema for subject "{subject}", '
                               f"details: {objections}, compatibility: '{level}'")
        number = known or len(self._texts) + 1
        self._ids[avro.identity(text)] = number
        self._texts.setdefault(number, text)
        self._subjects.setdefault(subject, []).append(Version(max([v.number for v in versions], default=0) + 1, number))
        return {"id": number}

    def lookup(self, subject: str, body: dict) -> dict:
        """The version of a subject that has this schema."""
        text, _ = _schema(body)
        number = self._ids.get(avro.identity(text))
        for version in self._versions(subject):
            if version.id == number:
                return self._describe(subject, version)
        raise Refused(40403, "Schema not found")

    def by_id(self, number: str) -> dict:
        """A schema's text."""
        if not number.isdigit() or int(number) not in self._texts:
            raise Refused(40403, f"Schema {number} not found")
        return {"schema": self._texts[int(number)]}

    def uses(self, number: str) -> list[dict]:
        """Subjects and versions that have a schema."""
        self.by_id(number)
        return [{"subject": subject, "version": version.number} for subject, versions in self._subjects.items()
                for version in versions if version.id == int(number) and not version.deleted]

    # ------------------------------------------------------------ subjects
    def subjects(self, prefix: str, deleted: bool) -> list[str]:
        """Names, those with all versions deleted only when asked for."""
        return sorted(subject for subject, versions in self._subjects.items() if subject.startswith(prefix)
                      and any(deleted or not version.deleted for version in versions))

    def versions(self, subject: str) -> list[int]:
        """The numbers."""
        return [version.number for version in self._versions(subject)]

    def version(self, subject: str, which: str) -> dict:
        """One version; `latest` or -1 for the newest."""
        return self._describe(subject, self._version(subject, which))

    def delete(self, subject: str, permanent: bool) -> list[int]:
        """Delete a subject: softly first, then for good."""
        versions = self._subjects.get(subject, [])
        if permanent:
            if not versions:
                raise _no_subject(subject)
            if any(not version.deleted for version in versions):
                raise Refused(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
            del self._subjects[subject]
            return [version.number for version in versions]
        if versions and all(version.deleted for version in versions):
            raise Refused(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")
        live = self._versions(subject)
        for version in live:
            version.deleted = True
        for setting in (self._levels, self._modes):
            setting.pop(subject, None)
        return [version.number for version in live]

    def delete_version(self, subject: str, which: str) -> int:
        """Delete one version softly."""
        version = self._version(subject, which)
        version.deleted = True
        return version.number

    def compatible(self, subject: str, which: str | None, body: dict, verbose: bool) -> dict:
        """Would it be taken? Against one version, or all that the level asks for."""
        _, schema = _schema(body)
        live = self._versions(subject) if which is None else [self._version(subject, which)]
        objections = avro.incompatibilities(self._level(subject), schema,
                                            [avro.parse(self._texts[version.id]) for version in live])
        return {"is_compatible": not objections} | ({"messages": objections} if verbose else {})

    # ------------------------------------------------------------ levels and modes
    def level(self, subject: str, default: bool) -> dict:
        """The level of a subject, or the global one."""
        if subject not in self._levels and not default:
            raise Refused(40408, f"Subject '{subject}' does not have subject-level compatibility configured")
        return {"compatibilityLevel": self._level(subject)}

    def set_level(self, subject: str, body: dict) -> dict:
        """Set it."""
        level = str(body.get("compatibility", "")).upper()
        if level not in LEVELS:
            raise Refused(42203, f"Invalid compatibility level. Valid values are {', '.join(LEVELS)}")
        self._levels[subject] = level
        return {"compatibility": level}

    def drop_level(self, subject: str) -> dict:
        """Back to the global one."""
        answer = self.level(subject, default=False)
        self._levels.pop(subject) if subject else self._levels.update({GLOBAL: "BACKWARD"})
        return answer

    def mode(self, subject: str, default: bool) -> dict:
        """The mode of a subject, or the global one."""
        if subject not in self._modes and not default:
            raise Refused(40409, f"Subject '{subject}' does not have subject-level mode configured")
        return {"mode": self._mode(subject)}

    def set_mode(self, subject: str, body: dict) -> dict:
        """Set it."""
        mode = str(body.get("mode", "")).upper()
        if mode not in MODES:
            raise Refused(42204, f"Invalid mode. Valid values are {', '.join(MODES)}")
        self._modes[subject] = mode
        return {"mode": mode}

    def drop_mode(self, subject: str) -> dict:
        """Back to the global one."""
        answer = self.mode(subject, default=False)
        self._modes.pop(subject) if subject else self._modes.update({GLOBAL: "READWRITE"})
        return answer

    # ------------------------------------------------------------ private
    def _level(self, subject: str) -> str:
        return self._levels.get(subject, self._levels[GLOBAL])

    def _mode(self, subject: str) -> str:
        if self._modes[GLOBAL] == "READONLY_OVERRIDE":
            return self._modes[GLOBAL]
        return self._modes.get(subject, self._modes[GLOBAL])

    def _versions(self, subject: str) -> list[Version]:
        live = [version for version in self._subjects.get(subject, []) if not version.deleted]
        if not live:
            raise _no_subject(subject)
        return live

    def _version(self, subject: str, which: str) -> Version:
        live = self._versions(subject)
        if which in ("latest", "-1"):
            return live[-1]
        if not which.isdigit() or int(which) == 0:
            raise Refused(42202, f"The specified version '{which}' is not a valid version id. Allowed values are between "
                                 "[1, 2^31-1] and the string \"latest\"")
        for version in live:
            if version.number == int(which):
                return version
        raise Refused(40402, f"Version {which} not found.")

    def _describe(self, subject: str, version: Version) -> dict:
        return {"subject": subject, "version": version.number, "id": version.id, "schema": self._texts[version.id]}


def _no_subject(subject: str) -> Refused:
    return Refused(40401, f"Subject '{subject}' not found.")


def _schema(body: dict) -> tuple[str, avro.Schema]:
    text = body.get("schema")
    if not isinstance(text, str) or not text:
        raise Refused(42201, "Empty schema")
    kind: Any = body.get("schemaType") or "AVRO"
    if kind != "AVRO" or body.get("references"):
        raise Refused(42201, f"Invalid schema: type {kind} or references, which this registry does not take")
    try:
        return text, avro.parse(text)
    except avro.Invalid as error:
        raise Refused(42201, f"Invalid schema: {error}") from error
