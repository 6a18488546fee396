package dynamo

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestSegmentSKRoundTrip(t *testing.T) {
	t.Parallel()
	for _, sequence := range []int64{0, 1, 9, 10, 255, 9999999999} {
		for _, part := range []int{0, 1, 9, 10, 99, 100, 999} {
			sk := segmentSK(sequence, part)
			if s, p, err := parseSegmentSK(sk); err != nil || s != sequence || p != part {
				t.Errorf("%s is read as %d, %d, %v", sk, s, p, err)
			}
		}
	}
}

// Keys sort by segment and then by part, the first part first: that is how a query returns them.
func TestSegmentSKSorts(t *testing.T) {
	t.Parallel()
	var keys []string
	for _, sequence := range []int64{0, 1, 2, 10, 99, 100, 1000000000} {
		for _, part := range []int{0, 1, 2, 10, 11, 100} {
			keys = append(keys, segmentSK(sequence, part))
		}
	}
	if !slices.IsSorted(keys) {
		t.Errorf("not in order: %q", keys)
	}
}

func TestParseSegmentSKRefuses(t *testing.T) {
	t.Parallel()
	for _, sk := range []string{"", "h#", "h#x", "h#1#", "h#1#x", "i", "c", "r#", "h#1.5", "h#99999999999999999999"} {
		if s, p, err := parseSegmentSK(sk); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", sk)) {
			t.Errorf("%q is read as %d, %d, error %v", sk, s, p, err)
		}
	}
}

// SQS takes 128 characters of ASCII as a group or deduplication id.
func TestGroupIDsAreWhatSQSTakes(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for _, id := range []string{"", "a", "A", "日本語", "\uFFFF", "a b", strings.Repeat("x", 1024), strings.Repeat("x", 1023)} {
		g := groupID(id)
		if len(g) > 128 || strings.Trim(g, "0123456789abcdef") != "" {
			t.Errorf("group of %q is %q", id, g)
		}
		if other, taken := seen[g]; taken {
			t.Errorf("%q and %q share a group", id, other)
		}
		seen[g] = id
	}
}

// Names made of ids must not run into each other, and must not change between releases: functions of two may run at once.
func TestDigestsAreStableAndUnambiguous(t *testing.T) {
	t.Parallel()
	if got, want := groupID("order-1"), "2b78bde4aa2bf21ace53a4583691f4466927aa18"; got != want {
		t.Errorf("group %s, want %s", got, want)
	}
	if digest("ab", "c") == digest("a", "bc") || digest("a") == digest("a", "") || digest("1:a") == digest("a") {
		t.Error("different parts have the same digest")
	}
}

func TestShardsAreUsedEvenly(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for n := range 1600 {
		count[shardOf(fmt.Sprint("order-", n))]++
	}
	for n := range shards {
		if c := count[strconv.Itoa(n)]; c < 50 || c > 200 {
			t.Errorf("shard %d has %d of 1600", n, c)
		}
	}
	if len(count) != shards {
		t.Errorf("%d shards, want %d", len(count), shards)
	}
}

func TestAttributesOfOtherTypesAreZero(t *testing.T) {
	t.Parallel()
	it := item{"s": str("x"), "n": num(math.MinInt64), "bad": str("12")}
	if getString(it, "s") != "x" || getNumber(it, "n") != math.MinInt64 {
		t.Error("a value is not what was put in")
	}
	if getString(it, "n") != "" || getString(it, "gone") != "" || getNumber(it, "bad") != 0 || getNumber(it, "gone") != 0 {
		t.Error("a value of another type is taken")
	}
}

// Ten thousand instances that block at once are spread over the partitions, each of which takes a thousand writes a second.
func TestBlockedInstances_tenThousandAtOnce_areSpread(t *testing.T) {
	t.Parallel()
	count := map[string]int{}
	for n := range 10_000 {
		count[partitionOf(fmt.Sprint("order-", n))]++
	}
	for _, partition := range partitionsOf(attentionBlocked) {
		if c := count[partition]; c < 500 || c > 750 {
			t.Errorf("%s has %d of them", partition, c)
		}
	}
	if len(count) != shards {
		t.Errorf("%d partitions", len(count))
	}
}
