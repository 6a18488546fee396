package replaycheck

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/internal/payloads"
	"github.com/perdure/perdure/internal/registry"
	"github.com/perdure/perdure/internal/replay"
)

// Serve replays the executions that it receives from c, one at a time, until the end of the input. It decodes payloads
// with the codecs.
func Serve(r *registry.Registry, codecs []perdure.Codec, c *Conn) error {
	alone, err := payloads.New(codecs, nil)
	if err != nil {
		return fmt.Errorf("verify: codec: %w", err)
	}
	withBucket, err := payloads.New(codecs, &remoteStore{conn: c})
	if err != nil {
		return fmt.Errorf("verify: codec: %w", err)
	}
	if err := c.Send(Reply{Ready: r.Names().Orchestrations}); err != nil {
		return err
	}
	for {
		var request Request
		switch err := c.Receive(&request); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case request.Replay == nil:
			return errors.New("verify: request without a history to replay")
		}

		h, encoding := request.Replay, alone
		if request.Bucket {
			encoding = withBucket
		}
		differences, err := Replay(r, &Execution{
			InstanceID: h.InstanceID, ExecutionID: h.ExecutionID, Events: h.Events, Fetch: c.fetch, Encoding: encoding,
		})
		v := verdict(differences, err)
		if err := c.Send(Reply{Verdict: &v}); err != nil {
			return err
		}
	}
}

// fetch requests a document during a replay, when no other messages are sent or received.
func (c *Conn) fetch(wanted history.Reference) (json.RawMessage, error) {
	if err := c.Send(Reply{Wanted: &wanted}); err != nil {
		return nil, err
	}
	var response Request
	if err := c.Receive(&response); err != nil {
		return nil, err
	}
	if response.Problem != "" {
		return nil, errors.New(response.Problem)
	}
	return response.Document, nil
}

func verdict(differences replay.Differences, err error) Verdict {
	v := Verdict{OtherInputs: differences.Count, FirstInput: differences.First}
	if err == nil {
		return v
	}
	if unread, ok := errors.AsType[*replay.FetchError](err); ok {
		v.Unread, v.Blocks = unread.Error(), errors.Is(err, perdure.ErrUnknownCodec)
		return v
	}
	v.Problem = err.Error()
	if differs, ok := errors.AsType[*replay.NondeterminismError](err); ok {
		v.EventID = differs.EventID
	}
	return v
}
