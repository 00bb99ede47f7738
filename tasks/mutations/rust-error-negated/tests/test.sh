#!/bin/sh
# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
# rustc itself compiles crate and driver: no build script, Cargo configuration or dependency takes part.
exec cab-tests unittest --driver '"$BUILD/driver"' --build '
  rustc --edition=2021 -Cdebuginfo=0 -Funsafe_code --crate-type=rlib --crate-name=again -o "$BUILD/libagain.rlib" src/lib.rs &&
  rustc --edition=2021 -Cdebuginfo=0 --extern=again="$BUILD/libagain.rlib" -o "$BUILD/driver" "$TESTS/driver.rs"
'
