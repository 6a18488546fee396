package payloadjson_test

import (
	"encoding/json"
	"math/big"
	"testing"
	"time"

	"github.com/perdure/perdure/internal/payloadjson"
)

// money and text have methods with pointer receivers.
type (
	money struct{ cents int64 }
	text  struct{ s string }
)

func (m *money) MarshalJSON() ([]byte, error) {
	return json.Marshal(map[string]int64{"cents": m.cents})
}
func (t *text) MarshalText() ([]byte, error) { return []byte(t.s), nil }

type inner struct{ Price money }

func TestMarshal_pointerReceiver_isCalled(t *testing.T) {
	t.Parallel()
	for want, v := range map[string]any{
		`{"cents":1}`:              money{1},
		`{"cents":2}`:              &money{2},
		`"a"`:                      text{"a"},
		`{"Price":{"cents":3}}`:    inner{money{3}},
		`[{"Price":{"cents":4}}]`:  [1]inner{{money{4}}},
		`[{"cents":5}]`:            []money{{5}},
		`{"At":{"cents":6},"N":7}`: struct{ At, N any }{&money{6}, 7},
		`{"Price":{"cents":8},"More":1}`: struct {
			inner
			More int
		}{inner{money{8}}, 1},
		`12345678901234567890123`: *mustInt("12345678901234567890123"),
	} {
		got, err := payloadjson.Marshal(v)
		if err != nil || string(got) != want {
			t.Errorf("%T: %s, %v, want %s", v, got, err, want)
		}
	}
}

// Values without such methods are encoded as by encoding/json, byte for byte, because a replay compares inputs.
func TestMarshal_otherValues_areAsInEncodingJSON(t *testing.T) {
	t.Parallel()
	var none *money
	for _, v := range []any{
		nil, none, 1, "<a>", true, 1.5, json.RawMessage(`{ "a": 1 }`), []byte("x"), time.Unix(0, 5).UTC(), time.Second,
		map[string]any{"b": 1, "a": []int{2}},
		struct {
			A int `json:"a,omitempty"`
			b int
		}{0, 1},
		[]any{1, nil},
		[2]int{1, 2},
		struct{}{},
		&struct{ A *int }{},
	} {
		want, wantErr := json.Marshal(v)
		got, err := payloadjson.Marshal(v)
		if string(got) != string(want) || (err == nil) != (wantErr == nil) {
			t.Errorf("%T: %s, %v, want %s, %v", v, got, err, want, wantErr)
		}
	}
	if _, err := payloadjson.Marshal(func() {}); err == nil {
		t.Error("a function was encoded")
	}
}

func TestMarshal_ordinaryStruct_allocatesNoCopy(t *testing.T) {
	v := any(struct{ A, B int }{1, 2})
	plain := testing.AllocsPerRun(1000, func() { _, _ = json.Marshal(v) })
	if got := testing.AllocsPerRun(1000, func() { _, _ = payloadjson.Marshal(v) }); got > plain {
		t.Errorf("%v allocations, json.Marshal has %v", got, plain)
	}
}

func mustInt(digits string) *big.Int {
	n, _ := new(big.Int).SetString(digits, 10)
	return n
}
