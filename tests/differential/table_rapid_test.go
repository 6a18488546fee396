package differential_test

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// Both tables execute random sequences of calls on four items.
func TestTable_randomCalls_matchEmulator(t *testing.T) {
	t.Parallel()

	var runs atomic.Int64

	rapid.Check(t, func(rt *rapid.T) {
		pk := fmt.Sprint("sequence", runs.Add(1), unique())
		sim, emulator := simulatedTable(), realClient()

		for range rapid.IntRange(5, 25).Draw(rt, "calls") {
			call := drawTableCall(rt)

			got, want := call.run(t.Context(), sim, pk), call.run(t.Context(), emulator, pk)
			if realCloud.normalize(got) != realCloud.normalize(want) {
				rt.Fatalf("%s\n  got from simaws: %s\n  want: %s", call.name, got, want)
			}
		}
	})
}

func drawTableCall(rt *rapid.T) tableCall {
	switch rapid.IntRange(0, 9).Draw(rt, "kind") {
	case 0, 1, 2, 3:
		return drawOperation(rt, drawKey(rt), "put", "update", "delete").alone()
	case 4, 5:
		return read(drawKey(rt), rapid.Bool().Draw(rt, "strong"))
	case 6:
		return drawQuestion(rt).call()
	default:
		keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 1, 4, rapid.ID).Draw(rt, "keys")
		operations := make([]operation, len(keys))

		for i, sk := range keys {
			operations[i] = drawOperation(rt, sk, "put", "update", "delete", "check")
		}

		return transaction("", operations...)
	}
}

func drawKey(rt *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(rt, "key")
}

func drawOperation(rt *rapid.T, sk string, actions ...string) operation {
	o := operation{action: rapid.SampledFrom(actions).Draw(rt, "action"), sk: sk}

	switch o.action {
	case "put":
		o.fields = item{
			"n": num(fmt.Sprint(rapid.IntRange(-2, 3).Draw(rt, "n"))),
			"a": str(rapid.SampledFrom([]string{"x", "y", "xy"}).Draw(rt, "a")),
		}
	case "update":
		o.update = rapid.SampledFrom([]string{
			"SET n = :v", "SET n = if_not_exists(n, :v) + :v", "ADD n :v", "SET b = :s REMOVE a", "SET a = b, b = :s",
		}).Draw(rt, "update")
	}

	drawCondition(rt, &o)

	return o
}

func drawCondition(rt *rapid.T, o *operation) {
	conditions := []string{
		"attribute_exists(pk)", "attribute_not_exists(pk)", "attribute_exists(b) OR n > :c", "n BETWEEN :c AND :d",
		"NOT n = :c", "n <> :c", "begins_with(a, :s)", "a IN (:s, :u)",
		"(n < :c OR a >= :s) AND attribute_not_exists(b)",
	}
	if o.action != "check" {
		conditions = append(conditions, "", "", "")
	}

	o.condition = rapid.SampledFrom(conditions).Draw(rt, "condition")
	all := item{":v": num("1"), ":c": num("1"), ":d": num("2"), ":s": str("x"), ":u": str("y")}

	for name, v := range all {
		if strings.Contains(o.condition+" "+o.update, name) {
			if o.values == nil {
				o.values = item{}
			}

			o.values[name] = v
		}
	}
}

func drawQuestion(rt *rapid.T) question {
	q := question{
		backward: rapid.Bool().Draw(rt, "backward"), strong: rapid.Bool().Draw(rt, "strong"),
		limit: int32(rapid.IntRange(0, 3).Draw(rt, "limit")),
	}
	q.condition = rapid.SampledFrom([]string{
		"pk = :pk", "pk = :pk AND sk > :k", "pk = :pk AND sk <= :k", "pk = :pk AND begins_with(sk, :k)",
	}).Draw(rt, "condition")

	q.values = item{}
	if q.condition != "pk = :pk" {
		q.values[":k"] = str(drawKey(rt))
	}

	if rapid.Bool().Draw(rt, "filtered") {
		q.filter = "n >= :n"
		q.values[":n"] = num("1")
	}

	return q
}
