#!/bin/bash
# Put pages of documentation whose generators are known into folders SITE/KIND, at most 40 into each, from
# packages of Debian 12: bash benchmarks/documentation.sh FOLDER; it needs apt-get, dpkg, 2 GB of disk, the net.
# Then: python -m benchmarks.templates --folder FOLDER
set -euo pipefail
target=$(realpath -m "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

pick() { # SITE/KIND PACKAGE PATTERN [PATTERN OF WHAT IS LEFT OUT]
  if [ ! -d "$2" ]; then
    apt-get download "$2"
    dpkg -x "$2"_*.deb "$2"
  fi
  mkdir -p "$target/$1"
  local number=0
  find "$2" -type f -size -400k -regextype posix-extended -regex ".*/$3" ! -regex ".*/${4:-//}" | LC_ALL=C sort |
    shuf -n 40 --random-source=<(yes) | while read -r file; do
      number=$((number + 1))
      cp "$file" "$target/$1/$number.html"
    done
}

pick javadoc/class openjdk-17-doc 'api/java.*/[A-Z][A-Za-z]*\.html' '.*class-use/.*'
pick javadoc/use openjdk-17-doc 'class-use/[A-Z][A-Za-z.]*\.html'
pick javadoc/package openjdk-17-doc 'package-summary\.html'
pick javadoc/tree openjdk-17-doc 'package-tree\.html'
pick rustdoc/struct rust-doc 'std/.*struct\..*\.html'
pick rustdoc/function rust-doc 'core/.*/fn\..*\.html'
pick rustdoc/trait rust-doc 'std/.*trait\..*\.html'
pick rustdoc/source rust-doc 'src/(std|core|alloc)/.*\.rs\.html'
pick mdbook/chapter rust-doc 'html/(book|reference|nomicon)/[a-z0-9-]*\.html'
pick gi-docgen/class libgtk-4-doc 'gtk4/class\..*\.html'
pick gi-docgen/method libgtk-4-doc 'gtk4/method\..*\.html'
pick gi-docgen/property libgtk-4-doc 'gtk4/property\..*\.html'
pick gi-docgen/enum libgtk-4-doc 'gtk4/enum\..*\.html'
pick doxygen/class libeigen3-doc 'html/(class|struct)[A-Za-z0-9_]*\.html'
pick doxygen/members libeigen3-doc 'html/(class|struct).*-members\.html'
pick doxygen/source libeigen3-doc 'html/.*_source\.html'
pick qdoc/class qtbase5-doc-html 'q[a-z0-9]*\.html'
pick qdoc/members qtbase5-doc-html 'q[a-z0-9]*-members\.html'
pick qdoc/obsolete qtbase5-doc-html 'q[a-z0-9]*-obsolete\.html'
pick docbook/postgresql postgresql-doc-15 'html/[a-z0-9-]*\.html'
pick sphinx/python python3.11-doc 'library/[a-z0-9.]*\.html'
pick sphinx/django python-django-doc '(ref|topics)/.*\.html'
pick gtk-doc/glib libglib2.0-doc 'glib/glib-.*\.html'
pick erlang/module erlang-doc '(stdlib|kernel|ssl|wx)-[0-9.]*/doc/html/[a-zA-Z_]*\.html'
pick texinfo/octave octave-doc 'octave\.html/[A-Z].*\.html'
pick asciidoc/git git-doc 'git-doc/git-.*\.html'
pick haddock/module libghc-aeson-doc 'html/Data-.*\.html'
pick haddock/source libghc-aeson-doc 'src/.*\.html'
pick sqlite/c3ref sqlite3-doc 'c3ref/[a-z].*\.html'
pick sqlite/release sqlite3-doc 'releaselog/.*\.html'
pick boostbook/reference libboost1.74-doc 'doc/html/boost/.*\.html'
