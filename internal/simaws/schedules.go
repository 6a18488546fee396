package simaws

import (
	"context"
	"hash/fnv"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
)

// precision is the maximum delay of a schedule. A schedule for 1:00 fires between 1:00:00 and 1:00:59.
const precision = time.Minute

// defaultGroup is the schedule group that every account has.
const defaultGroup = "default"

// Schedules simulates EventBridge Scheduler for one-time schedules whose target is a standard queue of the same Cloud.
// It implements any interface that consists of its methods of the SDK client.
//
// A schedule puts an invisible message into its target when it is created. A wait for the queue therefore includes its
// schedules.
type Schedules struct {
	cloud *Cloud

	mu       sync.Mutex
	groups   map[string]map[string]*schedule
	disorder ScheduleDisorder
}

type schedule struct {
	input    scheduler.CreateScheduleInput
	created  time.Time
	gone     int64 // the time at which it deletes itself; 0 means never
	queue    *queue
	messages []uint64
}

// ScheduleDisorder describes delays and duplicates, which AWS allows for schedules. The default, before the first call
// of [Schedules.Disorder], is typical of AWS: each schedule fires once, up to a minute late.
type ScheduleDisorder struct {
	// Seed selects the disorder. The same names with the same seed have the same disorder.
	Seed uint64
	// LateFrom and LateTo limit the delay of each schedule. The delays are spread between them.
	LateFrom, LateTo time.Duration
	// Twice is the probability (0 to 1) that a schedule fires a second time, up to a minute after the first.
	Twice float64
	// Linger is the time for which the name of a schedule stays in use after it has fired for the last time.
	Linger time.Duration
}

// Disorder sets the disorder of schedules that are created from now on.
func (s *Schedules) Disorder(d ScheduleDisorder) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.disorder = d
}

// CreateGroup creates a schedule group. The group "default" always exists.
func (s *Schedules) CreateGroup(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.groups[name] = map[string]*schedule{}
}

// Count returns the number of schedules.
func (s *Schedules) Count() int {
	s.mu.Lock()
	defer s.mu.Unlock()

	count, now := 0, s.cloud.nanos()

	for _, group := range s.groups {
		for _, sch := range group {
			if !sch.over(now) {
				count++
			}
		}
	}

	return count
}

// CreateSchedule creates a schedule.
func (s *Schedules) CreateSchedule(
	ctx context.Context, in *scheduler.CreateScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.CreateScheduleOutput, error) {
	return do(ctx, s.cloud, opCreateSchedule, in, func() (*scheduler.CreateScheduleOutput, error) {
		at, err := s.checkSchedule(in)
		if err != nil {
			return nil, err
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		group, err := s.group(in.GroupName)
		if err != nil {
			return nil, err
		}

		if old := group[*in.Name]; old != nil && !old.over(s.cloud.nanos()) {
			return nil, scheduleExists(*in.Name)
		}

		group[*in.Name] = s.arm(in, at)

		return &scheduler.CreateScheduleOutput{ScheduleArn: aws.String(scheduleARN(in.GroupName, *in.Name))}, nil
	})
}

// UpdateSchedule replaces all settings of a schedule.
func (s *Schedules) UpdateSchedule(
	ctx context.Context, in *scheduler.UpdateScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.UpdateScheduleOutput, error) {
	return do(ctx, s.cloud, opUpdateSchedule, in, func() (*scheduler.UpdateScheduleOutput, error) {
		all := scheduler.CreateScheduleInput(*in)

		at, err := s.checkSchedule(&all)
		if err != nil {
			return nil, err
		}

		s.mu.Lock()
		defer s.mu.Unlock()

		group, found, err := s.find(in.GroupName, in.Name)
		if err != nil {
			return nil, err
		}

		for _, id := range found.messages {
			found.queue.withdraw(id)
		}

		group[*in.Name] = s.arm(&all, at)

		return &scheduler.UpdateScheduleOutput{ScheduleArn: aws.String(scheduleARN(in.GroupName, *in.Name))}, nil
	})
}

// GetSchedule returns a schedule.
func (s *Schedules) GetSchedule(
	ctx context.Context, in *scheduler.GetScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.GetScheduleOutput, error) {
	return do(ctx, s.cloud, opGetSchedule, in, func() (*scheduler.GetScheduleOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()

		_, found, err := s.find(in.GroupName, in.Name)
		if err != nil {
			return nil, err
		}

		c := &found.input

		return &scheduler.GetScheduleOutput{
			Arn: aws.String(scheduleARN(in.GroupName, *in.Name)), Name: c.Name,
			GroupName:          aws.String(groupName(in.GroupName)),
			ScheduleExpression: c.ScheduleExpression, ScheduleExpressionTimezone: c.ScheduleExpressionTimezone,
			FlexibleTimeWindow: c.FlexibleTimeWindow, ActionAfterCompletion: c.ActionAfterCompletion, Target: c.Target,
			State: schedulertypes.ScheduleStateEnabled, CreationDate: &found.created,
			LastModificationDate: &found.created,
		}, nil
	})
}

// mostListed is the maximum number of schedules in a page of a list.
const mostListed = 100

// ListSchedules lists the names of a group's schedules in sorted order.
func (s *Schedules) ListSchedules(
	ctx context.Context, in *scheduler.ListSchedulesInput, _ ...func(*scheduler.Options),
) (*scheduler.ListSchedulesOutput, error) {
	return do(ctx, s.cloud, opListSchedules, in, func() (*scheduler.ListSchedulesOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()

		group, err := s.group(in.GroupName)
		if err != nil {
			return nil, err
		}

		out := &scheduler.ListSchedulesOutput{}

		for _, name := range slices.Sorted(maps.Keys(group)) {
			if name <= aws.ToString(in.NextToken) || group[name].over(s.cloud.nanos()) {
				continue
			}

			if len(out.Schedules) == mostListed {
				out.NextToken = out.Schedules[mostListed-1].Name

				break
			}

			out.Schedules = append(out.Schedules, schedulertypes.ScheduleSummary{
				Name: aws.String(name), GroupName: aws.String(groupName(in.GroupName)),
			})
		}

		return out, nil
	})
}

// DeleteSchedule deletes a schedule. A schedule that fires at the same moment still fires.
func (s *Schedules) DeleteSchedule(
	ctx context.Context, in *scheduler.DeleteScheduleInput, _ ...func(*scheduler.Options),
) (*scheduler.DeleteScheduleOutput, error) {
	return do(ctx, s.cloud, opDeleteSchedule, in, func() (*scheduler.DeleteScheduleOutput, error) {
		s.mu.Lock()
		defer s.mu.Unlock()

		group, found, err := s.find(in.GroupName, in.Name)
		if err != nil {
			return nil, err
		}

		delete(group, *in.Name)

		for _, id := range found.messages {
			found.queue.withdraw(id)
		}

		return &scheduler.DeleteScheduleOutput{}, nil
	})
}

// arm puts the message of a schedule into its queue, where it is invisible until it is due. If the queue does not
// exist, the message goes to the dead-letter queue, if there is one.
func (s *Schedules) arm(in *scheduler.CreateScheduleInput, at time.Time) *schedule {
	d, own := s.disorder, s.chances(*in.Name)
	sch := &schedule{input: *in, created: s.cloud.now()}
	at = at.Add(d.LateFrom + time.Duration(own.Int64N(int64(max(d.LateTo-d.LateFrom, 1)))))

	sch.queue = s.cloud.Queues.ofARN(aws.ToString(in.Target.Arn))
	if sch.queue == nil && in.Target.DeadLetterConfig != nil {
		sch.queue = s.cloud.Queues.ofARN(aws.ToString(in.Target.DeadLetterConfig.Arn))
	}

	if sch.queue != nil {
		sch.messages = append(sch.messages, sch.queue.appear(*in.Target.Input, clampedNanos(at)))

		if own.Float64() < d.Twice {
			at = at.Add(time.Duration(own.Int64N(int64(precision))))
			sch.messages = append(sch.messages, sch.queue.appear(*in.Target.Input, clampedNanos(at)))
		}
	}

	if in.ActionAfterCompletion == schedulertypes.ActionAfterCompletionDelete {
		sch.gone = clampedNanos(at.Add(d.Linger))
	}

	return sch
}

// chances returns the random numbers of a schedule. They do not depend on the time and order of its creation.
func (s *Schedules) chances(name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails

	return rand.New(rand.NewPCG(s.disorder.Seed, h.Sum64()))
}

// over reports whether a schedule has deleted itself.
func (s *schedule) over(now int64) bool { return s.gone != 0 && s.gone <= now }

// find returns an existing schedule. Schedules must be locked.
func (s *Schedules) find(group, name *string) (in map[string]*schedule, found *schedule, err error) {
	in, err = s.group(group)
	if err != nil {
		return nil, nil, err
	}

	found = in[aws.ToString(name)]
	if found == nil || found.over(s.cloud.nanos()) {
		return nil, nil, noSuchSchedule("Schedule " + aws.ToString(name))
	}

	return in, found, nil
}

// group returns a schedule group. Schedules must be locked.
func (s *Schedules) group(name *string) (map[string]*schedule, error) {
	group := s.groups[groupName(name)]
	if group == nil {
		return nil, noSuchSchedule("Schedule group " + groupName(name))
	}

	return group, nil
}

func groupName(name *string) string {
	if name == nil {
		return defaultGroup
	}

	return *name
}

func scheduleARN(group *string, name string) string {
	return "arn:aws:scheduler:us-east-1:000000000000:schedule/" + groupName(group) + "/" + name
}

// ARN returns the ARN of a queue, as the target of a schedule. It panics if the URL does not name a queue.
func (q *Queues) ARN(queueURL string) string {
	found, err := q.find(&queueURL)
	if err != nil {
		panic("simaws: no queue at " + queueURL)
	}

	return found.arn()
}

// ofARN returns the queue with an ARN, or nil if there is none.
func (q *Queues) ofARN(arn string) *queue {
	q.mu.RLock()
	defer q.mu.RUnlock()

	found := q.byName[arn[strings.LastIndexByte(arn, ':')+1:]]
	if found == nil || found.arn() != arn {
		return nil
	}

	return found
}

// appear puts a message into the queue that becomes visible at a time, without a limit of the delay. It returns the
// number of the message.
func (q *queue) appear(body string, at int64) uint64 {
	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	m := q.add(content{messageID: q.messageID(q.arrivals + 1), body: body}, now, at)
	m.sent = at

	q.notify()

	return m.id
}

// withdraw removes a message that is not visible yet.
func (q *queue) withdraw(id uint64) {
	now := q.cloud.nanos()

	q.mu.Lock()
	defer q.mu.Unlock()

	if m := q.messages[id]; m != nil && m.sent > now {
		delete(q.messages, id)
		q.deliveryOrder.remove(m)
		q.notify()
	}
}
