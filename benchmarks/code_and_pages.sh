#!/bin/bash
# Put Python packages into FOLDER/code, and pages of documentation, all made by Sphinx, into FOLDER/pages:
# bash benchmarks/code_and_pages.sh FOLDER; it needs pip, unzip, apt-get, dpkg of Debian 12, 1 GB of disk, the net.
# Then: python -m benchmarks.code_and_pages FOLDER
set -euo pipefail
mkdir -p "$1/code" "$1/pages"
target=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"

python -m pip download --quiet --no-deps --only-binary :all: --python-version 3.11 \
  dask==2026.8.0 django==5.2.19 matplotlib==3.11.2 networkx==3.6.1 nltk==3.10.4 pandas==3.1.1 scikit-learn==1.9.1 \
  sphinx==9.0.4 sqlalchemy==2.1.8 statsmodels==0.15.0 sympy==1.14.0 twisted==26.10.0
for wheel in *.whl; do
  unzip -q -o "$wheel" '*.py' -x '*.data/*' -d "$target/code"
done

for package in clang-14-doc cmake-doc llvm-14-doc python-django-doc python-nibabel-doc python-pandas-doc \
  python-sqlalchemy-doc python-tables-doc python3.11-doc sphinx-doc; do
  apt-get download --quiet --quiet "$package"
  dpkg -x "$package"_*.deb unpacked
  mkdir -p "$target/pages/$package"
  (cd unpacked && find usr/share -name '*.html' -type f -size -400k ! -path '*/_modules/*' ! -path '*/_static/*' \
    -exec cp --parents -t "$target/pages/$package" {} +)
  rm -r unpacked
done
