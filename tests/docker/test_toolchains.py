"""Each language of the base image through a driver: compiled offline as the verifier, it answers the tests."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """\
import unittest
from driver import Failed, ask

class HalfTest(unittest.TestCase):
    def test_even(self):
        self.assertEqual([ask("half", number) for number in (0, 2, 40)], [0, 1, 20])

    def test_odd(self):
        with self.assertRaisesRegex(Failed, "^Odd: 7$"):
            ask("half", 7)
"""
C = r"""
#include <stdio.h>

int half(int number, int *out);

int main(void) {
    FILE *requests = fdopen(3, "r"), *answers = fdopen(4, "w");
    int number, out;
    while (fscanf(requests, " [\"half\",%d]", &number) == 1) {
        if (half(number, &out) == 0) fprintf(answers, "{\"ok\":%d}\n", out);
        else fprintf(answers, "{\"error\":\"Odd: %d\"}\n", number);
        fflush(answers);
    }
}
"""
GO = r"""package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"work/half"
)

func main() {
	requests, answers := bufio.NewScanner(os.NewFile(3, "requests")), os.NewFile(4, "answers")
	for requests.Scan() {
		var request []any
		if err := json.Unmarshal(requests.Bytes(), &request); err != nil {
			panic(err)
		}
		number := int(request[1].(float64))
		if value, err := half.Half(number); err != nil {
			fmt.Fprintf(answers, "{\"error\": \"Odd: %d\"}\n", number)
		} else {
			fmt.Fprintf(answers, "{\"ok\": %d}\n", value)
		}
	}
}
"""
JAVA = r"""
import java.io.*;
import java.nio.file.*;

class Driver {
    public static void main(String[] args) throws IOException {
        var requests = new BufferedReader(new FileReader("/dev/fd/3"));
        var answers = new PrintStream(new FileOutputStream("/dev/fd/4"), true);
        for (String line; (line = requests.readLine()) != null; ) {
            int number = Integer.parseInt(line.replaceAll("[^0-9]", ""));
            try {
                answers.println("{\"ok\":" + Half.half(number) + "}");
            } catch (IllegalArgumentException error) {
                answers.println("{\"error\":\"Odd: " + number + "\"}");
            }
        }
    }
}
"""
NODE = """
import { createInterface } from "node:readline";
import { createReadStream, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";
const { half } = await import(pathToFileURL(process.cwd() + "/half." + process.argv[2]));
for await (const line of createInterface({ input: createReadStream("", { fd: 3 }) })) {
    const number = JSON.parse(line)[1];
    let answer;
    try {
        answer = { ok: half(number) };
    } catch (error) {
        answer = { error: `Odd: ${number}` };
    }
    writeSync(4, JSON.stringify(answer) + "\\n");
}
"""
RUST = r"""
use std::io::{BufRead, BufReader, Write};

fn main() {
    let requests = BufReader::new(std::fs::File::open("/dev/fd/3").unwrap());
    let mut answers = std::fs::OpenOptions::new().write(true).open("/dev/fd/4").unwrap();
    for line in requests.lines() {
        let number: u32 = line.unwrap().matches(char::is_numeric).collect::<String>().parse().unwrap();
        match half::half(number) {
            Some(value) => writeln!(answers, "{{\"ok\":{value}}}").unwrap(),
            None => writeln!(answers, "{{\"error\":\"Odd: {number}\"}}").unwrap(),
        }
    }
}
"""
LANGUAGES = {
    "c": (
        {"half.c": "int half(int n, int *out) { return n % 2 ? -1 : (*out = n / 2, 0); }\n"},
        {"driver.c": C},
        "gcc -Wall -o $BUILD/driver half.c $TESTS/driver.c",
        "$BUILD/driver",
    ),
    "go": (
        {
            "go.mod": "module work\n\ngo 1.24\n",
            "half/half.go": 'package half\n\nimport "errors"\n\nfunc Half(n int) (int, error) {\n'
            '\tif n%2 != 0 {\n\t\treturn 0, errors.New("odd")\n\t}\n\treturn n / 2, nil\n}\n',
        },
        {"driver.go": GO},
        "mkdir $BUILD/work && cp -r . $BUILD/work && cd $BUILD/work && mkdir driver"
        " && cp $TESTS/driver.go driver && go build -o $BUILD/driver ./driver",
        "$BUILD/driver",
    ),
    "java": (
        {
            "Half.java": "class Half {\n    static int half(int n) {\n        if (n % 2 != 0) throw new"
            " IllegalArgumentException();\n        return n / 2;\n    }\n}\n"
        },
        {"Driver.java": JAVA},
        "javac -d $BUILD/classes Half.java $TESTS/Driver.java",
        "java -cp $BUILD/classes Driver",
    ),
    "javascript": (
        {
            "half.mjs": "export function half(n) {\n    if (n % 2) throw new RangeError();\n"
            "    return n / 2;\n}\n"
        },
        {"driver.mjs": NODE},
        None,
        "node $TESTS/driver.mjs mjs",
    ),
    "typescript": (
        {
            "half.ts": "export function half(n: number): number {\n    if (n % 2) throw new RangeError();\n"
            "    return n / 2;\n}\n"
        },
        {"driver.mjs": NODE},
        None,
        "node $TESTS/driver.mjs ts",
    ),
    "rust": (
        {"lib.rs": "pub fn half(n: u32) -> Option<u32> { (n % 2 == 0).then_some(n / 2) }\n"},
        {"driver.rs": RUST},
        "rustc --crate-type=lib --crate-name=half -o $BUILD/libhalf.rlib lib.rs"
        " && rustc --extern half=$BUILD/libhalf.rlib -o $BUILD/driver $TESTS/driver.rs",
        "$BUILD/driver",
    ),
}

pytestmark = pytest.mark.docker


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_driver_of_each_language_answers(language: str, tmp_path: Path) -> None:
    code, driver, build, start = LANGUAGES[language]
    image = json.loads((ROOT / "images.lock").read_text())["images"]["base"]["id"]
    for place, files in (("workdir", code), ("tests", {**driver, "test_half.py": TESTS})):
        for name, text in files.items():
            path = tmp_path / place / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    command = ["cab-tests", "unittest", "--logs=/tmp", f"--driver={start}"]
    command += [f"--build={build}"] if build else []
    hardening = ["--network=none", "--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges"]
    hardening += ["--pids-limit=512", "--tmpfs=/tmp:exec,size=1g", "--user=1001:1001"]
    binds = [f"--volume={tmp_path / place}:/{place}:ro" for place in ("workdir", "tests")]
    done = subprocess.run(
        ["docker", "run", "--rm", *hardening, *binds, image, *command],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done
    assert done.stdout.split() == [
        "passed",
        "test_half.HalfTest.test_even",
        "passed",
        "test_half.HalfTest.test_odd",
    ]
