#!/bin/sh
# Print the Python to build with, or name each missing part of this machine in one sentence and fail.
# PYTHON chooses the interpreter and CXX the compiler; otherwise the first one that works is used.

oldest="3, 11"
newest="3, 14"
complaints=0

complain() {
    echo "$*" >&2
    complaints=1
}

# A command can exist and yet not run (shims of version managers), so each candidate is run.
suitable() {
    "$1" -c "import sys; sys.exit(not ($oldest) <= sys.version_info[:2] <= ($newest))" >/dev/null 2>&1
}

can_make_environments() {
    "$1" -c "import venv, ensurepip" >/dev/null 2>&1
}

has_headers() {
    "$1" -c "import os, sysconfig; open(os.path.join(sysconfig.get_path('include'), 'Python.h')).close()" \
        >/dev/null 2>&1
}

compiles() {
    echo '#include <vector>' | "$1" -std=c++17 -fsyntax-only -x c++ - >/dev/null 2>&1
}

python=""
incomplete=""
for candidate in ${PYTHON:-python3.14 python3.13 python3.12 python3.11 python3}; do
    suitable "$candidate" || continue
    if can_make_environments "$candidate" && has_headers "$candidate"; then
        python=$candidate
        break
    fi
    incomplete=${incomplete:-$candidate}
done

if [ -z "$python" ] && [ -n "$incomplete" ]; then
    name=$("$incomplete" -c "import sys; print('python%d.%d' % sys.version_info[:2])")
    can_make_environments "$incomplete" ||
        complain "$incomplete cannot make virtual environments: install the package $name-venv."
    has_headers "$incomplete" ||
        complain "The header Python.h of $incomplete is missing: install the package $name-dev."
elif [ -z "$python" ] && [ -n "$PYTHON" ]; then
    complain "PYTHON=$PYTHON does not run as a Python from 3.11 to 3.14."
elif [ -z "$python" ]; then
    complain "No Python from 3.11 to 3.14 runs here: install the packages python3, python3-venv and python3-dev."
fi

compiler=""
for candidate in ${CXX:-c++ g++ clang++}; do
    if compiles "$candidate"; then
        compiler=$candidate
        break
    fi
done
if [ -z "$compiler" ] && [ -n "$CXX" ]; then
    complain "CXX=$CXX does not compile C++17."
elif [ -z "$compiler" ]; then
    complain "No compiler for C++17 runs here: install the package g++."
fi

[ "$complaints" = 0 ] || exit 1
"$python" -c "import sys; print(sys.executable)"
