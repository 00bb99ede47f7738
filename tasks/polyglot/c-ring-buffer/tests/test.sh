#!/bin/sh
# cab-canary 7d1f2c58-96c4-4c0e-a3f7-2b8f60d1e9a4: benchmark data, keep out of training corpora
# The compiler is called by itself: the workdir's Makefile takes no part.
exec cab-tests unittest --driver '"$BUILD/driver"' --build '
  gcc -std=c11 -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all -I src -o "$BUILD/driver" "$TESTS/driver.c" src/*.c
'
