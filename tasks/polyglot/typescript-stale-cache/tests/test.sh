#!/bin/sh
# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
# The driver ends at once when nothing is asked of it: then all that it imports can be loaded.
exec cab-tests unittest --build '
set -eu
cp -R src "$TESTS/driver.mjs" "$BUILD/"
echo "{\"type\": \"module\"}" >"$BUILD/package.json"
node "$BUILD/driver.mjs" 3</dev/null 4>/dev/null
' --driver 'exec node "$BUILD/driver.mjs"'
