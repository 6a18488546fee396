package term

import (
	"strings"
	"testing"
	"time"
)

func TestDuration_isRoundedByMagnitude(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0ms", 0: "0ms", 999 * time.Millisecond: "999ms", 1250 * time.Millisecond: "1.25s",
		12345 * time.Millisecond:       "12.3s",
		59*time.Minute + 5*time.Second: "59m05s", 3*time.Hour + 4*time.Minute: "3h04m", 49 * time.Hour: "2d01h",
	} {
		if got := Duration(d); got != want {
			t.Errorf("%d: %s, want %s", d, got, want)
		}
	}
}

func TestLineWriter_controlCharacters_areReplaced(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	w := LineWriter{&b}
	line := "stack\x1b[31m failed\n"
	if n, err := w.Write([]byte(line)); n != len(line) || err != nil || strings.Contains(b.String(), "\x1b") ||
		!strings.HasSuffix(b.String(), " failed\n") || strings.Count(b.String(), "\n") != 1 {
		t.Errorf("wrote %q, %d, %v", b.String(), n, err)
	}
}
