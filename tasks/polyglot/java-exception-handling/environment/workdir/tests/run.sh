#!/bin/sh
# Compiles everything into build/ and runs the tests. Ends with 1 when one fails.
set -eu
cd "$(dirname "$0")/.."
rm -rf build
javac -proc:none -d build src/tides/*.java tests/*.java
exec java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp build MergeTest
