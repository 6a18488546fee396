package mcpserver

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/perdure/perdure/client"
	"github.com/perdure/perdure/cmd/perdure/internal/describe"
)

// fieldConfirmation is the argument that confirms a preview.
const fieldConfirmation = "confirmation"

// confirmed is a part of the arguments of each tool that changes something.
type confirmed struct {
	Confirmation string `json:"confirmation,omitempty" jsonschema:"confirmation of the preview; without it, the call changes nothing and returns a preview"`
}

func (c confirmed) value() string { return c.Confirmation }

// change is an operation that changes something, with a preview.
type change[In interface{ value() string }] struct {
	operation string
	title     string
	// effect describes the change, and is part of the tool's description.
	effect string
	// inspect reads the subject of the change, such as an instance.
	inspect func(ctx context.Context, c call[In]) (*inspection, error)
	// do makes the change, and returns a sentence about it and its data.
	do func(ctx context.Context, c call[In], seen *inspection) (did string, data any, err error)
}

// inspection is the content of a preview.
type inspection struct {
	text string
	data any
	// state is all of it that the change depends on. It must be the same when the preview is confirmed.
	state string
	// status is the status of the instance, if it exists.
	status client.Status
}

// addChange adds the tool of a change, if its operation is allowed.
func addChange[In interface{ value() string }](s *server, ch change[In]) {
	if !s.allowed[ch.operation] {
		return
	}
	name, closed, destructive := toolOf[ch.operation], false, true
	addTool(s, &mcp.Tool{
		Name: name, Title: ch.title,
		Description: ch.effect + " The first call returns a preview and changes nothing. Show it to the user. " +
			"Repeat the call with the same arguments and the confirmation if the user agrees." + untrustedNotice,
		Annotations: &mcp.ToolAnnotations{DestructiveHint: &destructive, OpenWorldHint: &closed},
	}, func(ctx context.Context, c call[In]) (*toolResult, error) {
		args, err := hashArguments(name, c.raw)
		if err != nil {
			return nil, err
		}
		if c.in.value() == "" {
			return previewOf(ctx, s, &ch, c, args)
		}
		return confirm(ctx, s, &ch, c, args)
	})
}

func previewOf[In interface{ value() string }](
	ctx context.Context, s *server, ch *change[In], c call[In], args string,
) (*toolResult, error) {
	seen, err := ch.inspect(ctx, c)
	if err != nil {
		return nil, err
	}
	value, expires := s.confirmations.issue(args, seen.state)
	a := &toolResult{
		Summary: "This is a preview. Nothing was changed.",
		Preview: &preview{Effect: ch.effect, Confirmation: value, ExpiresAt: expires.UTC().Truncate(time.Second)},
	}
	text, err := argumentsText(c.raw)
	if err != nil {
		return nil, err
	}
	return a, a.setData(text+"\n"+seen.text, seen.data)
}

// argumentsText returns the arguments of a change, a line for each. A user who sees only the preview must know what is
// sent.
func argumentsText(raw map[string]json.RawMessage) (string, error) {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		var doc bytes.Buffer
		if err := json.Compact(&doc, raw[name]); err != nil {
			return "", fmt.Errorf("read argument %q: %w", name, err)
		}
		fmt.Fprintf(&b, "%s: %s\n", name, boundedText(doc.String(), maxFieldBytes))
	}
	return b.String(), nil
}

// confirm makes a change whose preview still applies.
func confirm[In interface{ value() string }](
	ctx context.Context, s *server, ch *change[In], c call[In], args string,
) (*toolResult, error) {
	state, err := s.confirmations.use(c.in.value(), args)
	if err != nil {
		return nil, err
	}
	seen, err := ch.inspect(ctx, c)
	if err != nil {
		return nil, err
	}
	if seen.state != state {
		return nil, errConfirmationState
	}
	did, data, err := ch.do(ctx, c, seen)
	if err != nil {
		return nil, err
	}
	a := &toolResult{Summary: did}
	return a, a.setData("", data)
}

// hashArguments returns a hash of a tool's arguments without the confirmation. Their order and spaces do not matter.
func hashArguments(tool string, raw map[string]json.RawMessage) (string, error) {
	doc := bytes.NewBufferString(tool)
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if name == fieldConfirmation {
			continue
		}
		fmt.Fprintf(doc, "\n%q:", name)
		if err := json.Compact(doc, raw[name]); err != nil {
			return "", fmt.Errorf("read argument %q: %w", name, err)
		}
	}
	sum := sha256.Sum256(doc.Bytes())
	return hex.EncodeToString(sum[:]), nil
}

// inspectInstance reads the instance that a change concerns. Its state is its incarnation, its status and its pause,
// and the execution if the change concerns only one. A custom status may change in the meantime.
func (s *server) inspectInstance(ctx context.Context, id string, execution bool) (*inspection, error) {
	st, err := s.hub.Client.Status(ctx, id)
	if err != nil {
		return nil, err
	}
	state := []string{st.InstanceID, st.CreatedAt.Format(time.RFC3339Nano), string(st.Status)}
	if st.Paused != nil {
		state = append(state, st.Paused.At.Format(time.RFC3339Nano))
	}
	if execution {
		state = append(state, st.ExecutionID)
	}
	return &inspection{text: describe.Status(st), data: st, state: strings.Join(state, "\n"), status: st}, nil
}

// inspectFreeID requires that an instance ID is not in use.
func (s *server) inspectFreeID(ctx context.Context, id string) (*inspection, error) {
	_, err := s.hub.Client.Status(ctx, id)
	switch {
	case errors.Is(err, client.ErrNotFound):
		return &inspection{text: "No instance has this ID.\n", data: struct{}{}, state: "free"}, nil
	case err != nil:
		return nil, err
	default:
		return nil, fmt.Errorf("start: %w", client.ErrAlreadyExists)
	}
}
