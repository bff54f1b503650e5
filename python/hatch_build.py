"""Puts the program into the wheel, and the terms of the libraries that are bundled with it; see `python/build.sh`."""

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class ProgramHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        program = os.environ.get("WEBFILL_BINARY", "")
        if version == "editable" or not Path(program).is_file():
            raise ValueError("there is no program: build the wheel by `make wheel`")
        build_data["force_include"][program] = "webfill/bin/webfill"
        if licenses := os.environ.get("WEBFILL_LICENSES"):
            build_data["force_include"][licenses] = "webfill/bin/licenses"
        build_data["pure_python"] = False
        # The tag for all versions of Python. `auditwheel repair` adds the systems on which the wheel works.
        build_data["tag"] = "py3-none-linux_x86_64"
