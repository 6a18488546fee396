package dispatch_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/internal/simaws"
	"github.com/perdure/perdure/internal/simhub"
	"github.com/perdure/perdure/provider"
)

// deliveries sees each batch when it is handed to a function, and holds what follows to what was known then.
type deliveries struct {
	h *hub // nil: it does not look

	mu sync.Mutex
	// pointless are the attempts in the hands of a process that it is not to run, and why, by its name.
	pointless map[string]map[handed]string
	most      int // deliveries of a message
	// once are the attempts that are to begin once, and how often they have.
	once map[handed]int
	errs []error
}

// handed is an attempt of an activity in a batch.
type handed struct {
	executionID string
	activityID  int64
	attempt     int
}

func newDeliveries() *deliveries {
	return &deliveries{pointless: map[string]map[handed]string{}, once: map[handed]int{}}
}

// see takes a call that is about to be made.
func (d *deliveries) see(c simaws.Call) {
	batch, ok := c.Input.([]sqstypes.Message)
	if !ok || c.Operation != "Invoke" || d.h == nil {
		return
	}
	pointless, fresh := map[handed]string{}, map[handed]bool{}
	for i := range batch {
		n, _ := strconv.Atoi(batch[i].Attributes["ApproximateReceiveCount"])
		d.spent(&batch[i], n)
		item, err := provider.DecodeWorkItem(*batch[i].Body)
		if err != nil || item.ActivityID == 0 {
			continue
		}
		of := handed{item.ExecutionID, item.ActivityID, item.Attempt}
		d.expectOnce(of, item.AtMostOnce)
		if n == 1 && item.Attempt == 1 && !item.PossibleDuplicate && item.NotBefore == nil {
			fresh[of] = true // a first delivery costs nothing: nobody has looked
		} else if why := d.whyNot(&item); why != "" {
			pointless[of] = why
		}
	}
	for of := range fresh {
		delete(pointless, of) // nothing tells its twin apart
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.pointless[*batch[0].ReceiptHandle] = pointless
}

// Deliveries are not to be spent faster than so: some at once, and then one in a while. A hundred of them last for a quarter of an hour
// even of the worst, in which processes die, and for a night of what is given back.
const (
	deliveriesAtOnce = 5
	oneDeliveryIn    = 10 * time.Second
)

// spent wants a message's deliveries to last (R19).
func (d *deliveries) spent(m *sqstypes.Message, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	first, _ := strconv.ParseInt(m.Attributes["ApproximateFirstReceiveTimestamp"], 10, 64)
	age := time.Since(time.UnixMilli(first))
	d.most = max(d.most, n)
	if most := deliveriesAtOnce + int(age/oneDeliveryIn); n > most {
		d.errs = append(d.errs, fmt.Errorf("R19: a message has used up %d deliveries in %v: %s", n, age, *m.Body))
	}
}

// whyNot says why an activity that comes again is not to run, as history and its retry's item have it now; "" where it may.
func (d *deliveries) whyNot(item *provider.WorkItem) string {
	ctx := context.Background()
	settled, err := d.h.Provider.ReadSettled(ctx, item.ExecutionID, 0)
	if err != nil {
		return ""
	}
	var ids provider.IDSet
	for _, r := range settled.IDs {
		ids = ids.Add(r)
	}
	for _, r := range settled.Cancelled {
		if !item.WaitForCancellation {
			ids = ids.Add(r)
		}
	}
	switch current, err := d.h.Provider.ReadRetry(ctx, item.ExecutionID, item.ActivityID); {
	case settled.Ended:
		return "its execution was over"
	case ids.Has(item.ActivityID):
		return "it had been settled"
	case item.Retry != nil && err == nil && current.Attempt > 0 && current.Attempt != item.Attempt:
		return fmt.Sprintf("attempt %d was the current one", current.Attempt)
	}
	return ""
}

// expectOnce notes an attempt that is to begin once.
func (d *deliveries) expectOnce(of handed, once bool) {
	if !once {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.once[of] += 0
}

// begins is for each activity whose code begins: what was over when it was delivered again does not run (R14), and what is to begin once begins once (R32).
func (d *deliveries) begins(ctx context.Context) {
	name, died := simhub.Process(ctx)
	a := perdure.ActivityInfoFrom(ctx)
	d.mu.Lock()
	defer d.mu.Unlock()
	of := handed{a.ExecutionID, a.ActivityID, a.Attempt}
	if n, once := d.once[of]; once {
		if d.once[of] = n + 1; n > 0 {
			d.errs = append(d.errs, fmt.Errorf("R32: activity #%d attempt %d of %s began again in delivery %d", a.ActivityID, a.Attempt, a.ExecutionID, a.DeliveryCount))
		}
	}
	if why := d.pointless[name][of]; why != "" && !died {
		d.errs = append(d.errs, fmt.Errorf("R14: activity #%d attempt %d of %s began in delivery %d, before which %s", a.ActivityID, a.Attempt, a.ExecutionID, a.DeliveryCount, why))
	}
}
