package client

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	localhub "github.com/perdure/perdure/client/internal/local"
	"github.com/perdure/perdure/client/internal/pendingtasks"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// local carries out operations on a provider.
type local struct{ localhub.Hub }

// Status implements operations.
func (l local) Status(ctx context.Context, instanceID string) (Status, error) {
	in, err := l.Instance(ctx, instanceID)
	if err != nil {
		return Status{}, err
	}
	return l.withResult(ctx, in)
}

// Wait implements operations.
func (l local) Wait(ctx context.Context, instanceID string) (Status, error) {
	in, err := l.WaitEnd(ctx, instanceID)
	if err != nil {
		return l.statusOf(ctx, &in), err
	}
	return l.withResult(ctx, in)
}

// WaitForStart implements operations.
func (l local) WaitForStart(ctx context.Context, instanceID string) (Status, error) {
	var last provider.Instance
	err := l.WaitUntil(ctx, instanceID, func(ctx context.Context) (done bool, err error) {
		in, err := l.Instance(ctx, instanceID)
		if err != nil {
			return false, err
		}
		last = in
		return in.Status != StatusPending, nil
	})
	if err != nil {
		return l.statusOf(ctx, &last), err
	}
	return l.withResult(ctx, last)
}

// List implements operations.
func (l local) List(ctx context.Context, q *provider.ListQuery) (items []Status, next string, err error) {
	found, err := l.ListInstances(ctx, *q)
	if err != nil {
		return nil, "", err
	}
	items = make([]Status, len(found.Instances))
	for i := range found.Instances {
		items[i] = l.statusOf(ctx, &found.Instances[i])
	}
	return items, found.NextCursor, nil
}

// Pending implements operations.
func (l local) Pending(ctx context.Context, of history.ExecutionRef, limit int) (Pending, error) {
	p := Pending{ReadAt: l.Now().UTC(), Items: []PendingItem{}}
	of, err := l.Current(ctx, of)
	if err != nil {
		return p, err
	}
	list, err := pendingtasks.Read(ctx, l.Hub, of, limit, p.ReadAt)
	p.Total, p.Blocked = list.Total, (*BlockedState)(list.Blocked)
	for i := range list.Items {
		x := PendingItem(list.Items[i])
		about := perdure.PayloadInfo{
			InstanceID: of.InstanceID, ExecutionID: of.ExecutionID, Kind: perdure.PayloadErrorDetails, Name: x.Name,
		}
		x.LastError, _ = l.DecodeFailure(ctx, about, x.LastError) // during an outage, details stay encoded
		p.Items = append(p.Items, x)
	}
	return p, err
}

// decode returns the document of a payload, or a description if the client cannot decode or read it. It returns an
// error only for outages.
func (l local) decode(
	ctx context.Context, about perdure.PayloadInfo, p history.Payload,
) (doc json.RawMessage, encoded *EncodedPayload, err error) {
	doc, undecodable, err := l.Decode(ctx, about, p)
	if undecodable == nil {
		return doc, nil, err
	}
	described, _ := EncodedPayloadOf(p)
	described.cause = undecodable
	return nil, &described, nil
}

// withResult returns the status and, for an instance that has ended, the result from its history.
func (l local) withResult(ctx context.Context, in provider.Instance) (Status, error) {
	s := l.statusOf(ctx, &in)
	if s.Failure = in.Diagnosis; !s.Status.Terminal() || s.Status == StatusDeleting {
		return s, nil
	}

	end, err := l.ReadTerminalEvent(ctx, in.ExecutionID)
	if err != nil {
		return s, fmt.Errorf("instance %q: result: %w", in.InstanceID, err)
	}
	about := perdure.PayloadInfo{
		InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Kind: perdure.PayloadErrorDetails, Name: in.Name,
	}
	if s.Failure, err = l.DecodeFailure(ctx, about, localhub.FailureOf(&end)); err != nil {
		return s, fmt.Errorf("result: %w", err)
	}
	if s.Status == StatusTerminated {
		s.TerminatedBy = end.RequestedBy
	}

	if end.Output == nil {
		return s, nil
	}
	about.Kind = perdure.PayloadOrchestrationOutput
	if s.Output, s.EncodedOutput, err = l.decode(ctx, about, end.Output); err != nil {
		return s, fmt.Errorf("result: %w", err)
	}
	return s, nil
}

// statusOf returns the status of an instance without its result. If the custom status cannot be read because of an
// outage, the status describes it as encoded.
func (l local) statusOf(ctx context.Context, in *provider.Instance) Status {
	s := Status{
		InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, ExecutionNumber: in.ExecutionNumber,
		Orchestration: in.Name, Version: in.Version, Status: in.Status, CreatedAt: in.CreatedAt,
		UpdatedAt: in.UpdatedAt, StartAt: in.StartAt, Parent: in.Parent, Tags: in.Tags, CustomStatus: in.CustomStatus,
		StartedBy: in.RequestedBy, Paused: in.Paused, Notes: in.Notes,
	}
	if s.Tags == nil {
		s.Tags = map[string]string{} // in JSON {}, not null
	}

	p := history.Payload(in.CustomStatus)
	if !p.IsEncoded() {
		if doc, plain := p.Document(); plain {
			s.CustomStatus = doc
		}
		return s
	}
	about := perdure.PayloadInfo{
		InstanceID: in.InstanceID, ExecutionID: in.ExecutionID, Kind: perdure.PayloadCustomStatus, Name: in.Name,
	}
	s.CustomStatus, s.EncodedCustomStatus, _ = l.decode(ctx, about, p)
	if s.CustomStatus == nil && s.EncodedCustomStatus == nil {
		encoded, _ := EncodedPayloadOf(p)
		s.EncodedCustomStatus = &encoded
	}
	return s
}
