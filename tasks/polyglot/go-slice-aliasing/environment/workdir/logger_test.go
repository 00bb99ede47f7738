package fieldlog

import "testing"

func check(t *testing.T, logger Logger, want string) {
	t.Helper()
	if got := logger.Line("ok"); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestLine(t *testing.T) {
	check(t, New(), "msg=ok")
	check(t, New(Field{"app", "gateway"}, Field{"host", "n1"}), "app=gateway host=n1 msg=ok")
}

func TestQuotes(t *testing.T) {
	check(t, New(Field{"a", ""}, Field{"b", "x y"}, Field{"c", "1=1"}), `a="" b="x y" c="1=1" msg=ok`)
}

func TestWith(t *testing.T) {
	logger := New(Field{"app", "gateway"}).With(Field{"host", "n1"}, Field{"zone", "b"})
	check(t, logger, "app=gateway host=n1 zone=b msg=ok")
}

func TestWithAKnownKey(t *testing.T) {
	check(t, New(Field{"level", "info"}, Field{"host", "n1"}).With(Field{"level", "debug"}), "level=debug host=n1 msg=ok")
}

func TestWithout(t *testing.T) {
	logger := New(Field{"app", "gateway"}, Field{"peer", "10.0.0.7"}, Field{"host", "n1"})
	check(t, logger.Without("peer", "port"), "app=gateway host=n1 msg=ok")
}

func TestRequestsOfOneConnection(t *testing.T) {
	connection := New(Field{"app", "gateway"}, Field{"host", "n1"}).With(Field{"conn", "81"})
	alice := connection.With(Field{"user", "alice"})
	bob := connection.With(Field{"user", "bob"})
	check(t, alice, "app=gateway host=n1 conn=81 user=alice msg=ok")
	check(t, bob, "app=gateway host=n1 conn=81 user=bob msg=ok")
}
