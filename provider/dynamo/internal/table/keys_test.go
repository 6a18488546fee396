package table

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSegmentSK_parsed_isUnchanged(t *testing.T) {
	t.Parallel()
	for _, sequence := range []int64{0, 1, 9, 10, 255, 9999999999} {
		for _, part := range []int{0, 1, 9, 10, 99, 100, 999} {
			sk := SegmentSK(sequence, part)
			if s, p, err := ParseSegmentSK(sk); err != nil || s != sequence || p != part {
				t.Errorf("%s is parsed as %d, %d, error %v", sk, s, p, err)
			}
		}
	}
}

// Queries return segments and their parts in the order of the keys.
func TestSegmentSK_sortsBySegmentAndPart(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, sequence := range []int64{0, 1, 2, 10, 99, 100, 1000000000} {
		for _, part := range []int{0, 1, 2, 10, 11, 100} {
			keys = append(keys, SegmentSK(sequence, part))
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("keys are not sorted: %q", keys)
	}
}

func TestParseSegmentSK_invalidKey_isRejected(t *testing.T) {
	t.Parallel()
	for _, sk := range []string{"", "h#", "h#x", "h#1#", "h#1#x", "i", "c", "r#", "h#1.5", "h#99999999999999999999"} {
		if s, p, err := ParseSegmentSK(sk); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", sk)) {
			t.Errorf("%q is parsed as %d, %d, error %v", sk, s, p, err)
		}
	}
}

// Keys that are derived from several IDs must be unambiguous.
func TestDigest_differentParts_differ(t *testing.T) {
	t.Parallel()
	if Digest("ab", "c") == Digest("a", "bc") || Digest("a") == Digest("a", "") || Digest("1:a") == Digest("a") {
		t.Error("different parts have the same digest")
	}
}

func TestShardOf_manyInstances_usesShardsEvenly(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for n := range 1600 {
		count[ShardOf(fmt.Sprint("order-", n))]++
	}
	for n := range Shards {
		if c := count[strconv.Itoa(n)]; c < 50 || c > 200 {
			t.Errorf("shard %d has %d of 1,600 instances", n, c)
		}
	}
	if len(count) != Shards {
		t.Errorf("%d shards, want %d", len(count), Shards)
	}
}

func TestGetStringAndGetNumber_otherType_isZero(t *testing.T) {
	t.Parallel()
	it := Item{"s": Str("x"), "n": Num(math.MinInt64), "bad": Str("12")}
	if GetString(it, "s") != "x" || GetNumber(it, "n") != math.MinInt64 {
		t.Error("a value differs from the stored value")
	}
	if GetString(it, "n") != "" || GetString(it, "gone") != "" || GetNumber(it, "bad") != 0 ||
		GetNumber(it, "gone") != 0 {
		t.Error("a value of another type is returned")
	}
}
