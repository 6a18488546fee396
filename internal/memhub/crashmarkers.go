package memhub

import (
	"context"
	"fmt"

	"github.com/perdure/perdure/provider"
)

// crashMarkers counts the deliveries of each record whose code did not return (provider.CrashMarkers).
type crashMarkers struct {
	*base

	marks map[string]*crashMark
}

// crashMark counts the deliveries of a record that started code and were not unmarked.
type crashMark struct {
	delivery, begun int
}

func markKey(a *provider.Delivery) string {
	return fmt.Sprintf("%s %d %s", a.ExecutionID, a.ActivityID, a.Record.ID)
}

// PutCrashMarker implements provider.CrashMarkers. It ignores a delivery that is older than the last marked delivery.
func (st *crashMarkers) PutCrashMarker(ctx context.Context, a provider.Delivery) (crashCount int, err error) {
	return callFor(ctx, st.base, func() (int, error) {
		m := st.marks[markKey(&a)]
		if m == nil {
			m = &crashMark{}
			st.marks[markKey(&a)] = m
		}
		switch isNew := a.Record.ReceiveCount > m.delivery; {
		case isNew && (!a.Batched || m.begun == 0):
			m.delivery = a.Record.ReceiveCount
			m.begun++
		case a.Batched && a.Record.ReceiveCount != m.delivery:
			return m.begun, nil // the count does not include this delivery
		}
		return max(0, m.begun-1), nil
	})
}

// DeleteCrashMarker implements provider.CrashMarkers. It does not delete the marker of a later delivery.
func (st *crashMarkers) DeleteCrashMarker(ctx context.Context, a provider.Delivery) error {
	return st.call(ctx, func() error {
		m := st.marks[markKey(&a)]
		switch {
		case m == nil || m.delivery < a.Record.ReceiveCount:
		case m.delivery > a.Record.ReceiveCount:
			m.begun = min(m.begun, 1)
		case a.Progressed:
			m.begun = 1
		default:
			m.begun = 0
		}
		return nil
	})
}
