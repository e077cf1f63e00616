"""Which folders hold code that nobody wrote for the project, and which only have such a name."""

import pytest

from treedot.readers import read_code
from treedot.readers.folders import BUILD, DEPENDENCIES, ENVIRONMENT, VENDORED, Skipped

CODE = "function f(a) {\n  return a + 1;\n}\n"
COMPILED = f'"use strict";\nObject.defineProperty(exports, "__esModule", {{ value: true }});\n{CODE}'
PACKAGE = '{"main": "./dist/index.js", "scripts": {"build": "rollup"}}'

FOREIGN = [
    ({"node_modules/a/index.js": CODE}, DEPENDENCIES),
    ({"lib/python3.12/site-packages/a.py": "def f(): pass\n"}, DEPENDENCIES),
    ({"libs/a-1.0.dist-info/RECORD": "", "libs/a.py": "def f(): pass\n"}, DEPENDENCIES),
    ({"packages/.package-lock.json": "{}", "packages/a/index.js": CODE}, DEPENDENCIES),
    ({"env/pyvenv.cfg": "", "env/lib/a.py": "def f(): pass\n"}, ENVIRONMENT),
    ({"conda/conda-meta/history": "", "conda/a.py": "def f(): pass\n"}, ENVIRONMENT),
    ({"third_party/a.c": "int f() { return 1; }\n"}, VENDORED),
    ({"src/_vendor/a.py": "def f(): pass\n"}, VENDORED),
    ({"vendor/jquery/LICENSE.txt": "", "vendor/jquery/jquery.js": CODE}, VENDORED),
    ({"vendor/a.js": "/*! a v1.2.3 */\n" + CODE}, VENDORED),
    ({"vendor/modules.txt": "", "vendor/a.go": "package a\nfunc F() {}\n"}, VENDORED),
    ({"extern/six.py": "# Copyright (c) 2010-2020 Somebody Else\ndef f(): pass\n"}, VENDORED),
    ({"dist/index.js": COMPILED}, BUILD),
    ({"lib/index.js": CODE, "lib/index.js.map": "{}"}, BUILD),
    ({"dist/index.js": CODE, "dist/index.d.ts": "export function f(a: any): any;\n"}, BUILD),
    ({"package.json": PACKAGE, "dist/index.js": CODE}, BUILD),
    ({"setup.py": "", "build/lib/a.py": "def f(): pass\n"}, BUILD),
    ({"pom.xml": "", "target/generated-sources/A.java": "class A { void f() {} }\n"}, BUILD),
    ({"output/CACHEDIR.TAG": "", "output/a.rs": "fn f() {}\n"}, BUILD),
    ({"cmake/CMakeCache.txt": "", "cmake/a.c": "int f() { return 1; }\n"}, BUILD),
    ({"coverage/prettify.js": CODE, "coverage/block-navigation.js": CODE}, BUILD),
]
OWN = [
    {"vendor/views.py": "def f(): pass\n"},
    {
        "vendor/A.java": "/* Copyright 2020 Us */ class A { void f() {} }\n",
        "B.java": "/* Copyright 2019 Us */\n",
    },
    {"external/tools.py": '"""Use external tools."""\ndef f(): pass\n'},
    {"dist/index.js": CODE},
    {"build/make.py": "def f(): pass\n"},
    {"lib/index.js": CODE, "lib/index.d.ts": "export function f(a: any): any;\n"},
    {"package.json": '{"main": "lib/index.js", "scripts": {"build": "make"}}', "lib/index.js": CODE},
    {"package.json": '{"main": 1, "scripts": []', "dist/index.js": CODE},
    {"modules/index.js": CODE},
    {"env/settings.py": "def f(): pass\n"},
    {"a.egg-info/PKG-INFO": "", "a/__init__.py": "def f(): pass\n"},
    {"CMakeLists.txt": "", "CMakeCache.txt": "", "a.c": "int f() { return 1; }\n"},
]


def make(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.mark.parametrize(("files", "reason"), FOREIGN)
def test_foreign_folders_are_left_out_and_counted_unless_asked_for(tmp_path, files, reason):
    make(tmp_path, {"own/own.py": "def own(): pass\n", **files})
    skipped, asked = Skipped(), Skipped()
    assert "own" in read_code(tmp_path, on_skip=skipped).columns["name"]
    assert skipped.counts == {reason: 1}
    more = read_code(tmp_path, on_skip=asked, include_vendored=True)
    assert len(more) > len(read_code(tmp_path))
    assert not asked.counts


@pytest.mark.parametrize("files", OWN)
def test_a_folder_that_only_has_such_a_name_is_read(tmp_path, files):
    make(tmp_path, files)
    skipped = Skipped()
    assert len(read_code(tmp_path, on_skip=skipped)) > 0
    assert not skipped.counts


def test_a_foreign_folder_that_is_named_is_read(tmp_path):
    make(tmp_path, {"node_modules/a/index.js": CODE, "node_modules/a/node_modules/b/index.js": CODE})
    assert len(read_code(tmp_path)) == 0
    assert len(read_code(tmp_path / "node_modules")) == 1
    assert len(read_code(tmp_path / "node_modules" / "a" / "index.js")) == 1


def test_the_headers_of_the_project_itself_are_no_evidence(tmp_path):
    header = "# Copyright 2020 Us and others\ndef f(): pass\n"
    make(tmp_path, {"a.py": header, "vendor/b.py": header.replace("2020", "2021")})
    assert len(read_code(tmp_path)) == 2
