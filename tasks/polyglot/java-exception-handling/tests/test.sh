#!/bin/sh
# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
exec cab-tests unittest --build '
set -eu
find src -name "*.java" >"$BUILD/sources"
javac -J-Xshare:auto -J-XX:TieredStopAtLevel=1 -J-XX:+UseSerialGC \
    -proc:none -encoding UTF-8 -cp "$BUILD" -d "$BUILD/classes" "@$BUILD/sources" "$TESTS/Driver.java"
' --driver 'exec java -Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp "$BUILD/classes" Driver'
