package replaycheck

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Variable is the environment variable that makes the binary of an orchestrator replay histories instead of serving its
// hub. Its value is Protocol.
const Variable = "PERDURE_VERIFY"

// Protocol is the name and version of the protocol: one line of JSON for each message. Lines of the binary start with
// this name, because user code may print other lines.
const Protocol = "perdure.verify/1"

// Requested reports whether the environment requests replays from a binary.
func Requested(getenv func(string) string) bool { return getenv(Variable) == Protocol }

// Request is a message to the binary: an execution to replay, or the response to a Reply with Wanted or Object.
type Request struct {
	Replay *History `json:"replay,omitempty"`
	// Bucket is set with Replay if the binary may request objects of the hub's bucket. Earlier releases of the command
	// line cannot respond to such requests.
	Bucket bool `json:"bucket,omitempty"`
	// Document is the requested document. Problem is the reason why it is not available.
	Document json.RawMessage `json:"document,omitempty"`
	Problem  string          `json:"problem,omitempty"`
	// Bytes is the number of bytes that follow the line: an object, unencoded. 40 MiB as JSON would need several times
	// as much memory.
	Bytes int64 `json:"bytes,omitempty"`
}

// History is an execution to replay.
type History struct {
	InstanceID  string          `json:"instanceId"`
	ExecutionID string          `json:"executionId"`
	Events      []history.Event `json:"events"`
}

// Reply is a message of the binary. It has exactly one of these fields.
type Reply struct {
	// Ready is the first message: the versions of each orchestration that the binary contains.
	Ready map[string][]string `json:"ready,omitempty"`
	// Wanted requests a document that the history refers to. The response is a Request with Document or Problem.
	Wanted *history.Reference `json:"wanted,omitempty"`
	// Object requests an object of the bucket by its key. The response is a Request with Bytes or Problem, followed by
	// the bytes of the object.
	Object string `json:"object,omitempty"`
	// Verdict is the result of a replay, and its last message.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Verdict is the result of a replay.
type Verdict struct {
	// Problem is the reason why the code would block the instance. It is empty if the instance would continue.
	Problem string `json:"problem,omitempty"`
	// EventID is the event at which history and code differ. It is 0 for other problems.
	EventID int64 `json:"eventId,omitempty"`
	// Unread is the reason why the binary could not replay the execution. It does not report a problem of the code.
	Unread string `json:"unread,omitempty"`
	// Blocks is set with Unread if the binary lacks the codec of a payload. The instance would become blocked if the
	// binary were deployed.
	Blocks bool `json:"blocks,omitempty"`
	// OtherInputs is the number of decisions whose input differs from the recorded one. Such decisions do not block the
	// instance. FirstInput describes the first one.
	OtherInputs int    `json:"otherInputs,omitempty"`
	FirstInput  string `json:"firstInput,omitempty"`
}

// Conn sends and receives messages, one line each. One goroutine may call Send while another calls Receive, but neither
// method supports concurrent calls.
type Conn struct {
	in     *bufio.Reader
	out    io.Writer
	prefix string // of sent lines
	expect string // of received lines
	other  io.Writer
}

// NewBinaryConn returns the Conn of a binary that replays histories.
func NewBinaryConn(in io.Reader, out io.Writer) *Conn {
	return &Conn{in: bufio.NewReader(in), out: out, prefix: "\n" + Protocol + " ", other: io.Discard}
}

// NewCommandConn returns the Conn of a command that requests replays from a binary. It writes lines of the binary that
// are not messages to other.
func NewCommandConn(in io.Reader, out, other io.Writer) *Conn {
	return &Conn{in: bufio.NewReader(in), out: out, expect: Protocol + " ", other: other}
}

// Send sends a message.
func (c *Conn) Send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("verify: encode message: %w", err)
	}
	line := append(append([]byte(c.prefix), b...), '\n')
	if _, err := c.out.Write(line); err != nil {
		return fmt.Errorf("verify: send: %w", err)
	}
	return nil
}

// SendObject sends a requested object.
func (c *Conn) SendObject(data []byte) error {
	if err := c.Send(Request{Bytes: int64(len(data))}); err != nil {
		return err
	}
	if _, err := c.out.Write(data); err != nil {
		return fmt.Errorf("verify: send: %w", err)
	}
	return nil
}

// ReceiveObject receives the n bytes of an object. Receive the message with Bytes first.
func (c *Conn) ReceiveObject(n int64) ([]byte, error) {
	if n < 0 || n > provider.MaxStoredPayloadBytes {
		return nil, fmt.Errorf("verify: receive: object of %d bytes exceeds the limit of %d bytes", n,
			provider.MaxStoredPayloadBytes)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(c.in, data); err != nil {
		return nil, fmt.Errorf("verify: receive: %w", err)
	}
	return data, nil
}

// Receive receives the next message, of any length. It returns io.EOF at the end of the input.
func (c *Conn) Receive(message any) error {
	for {
		line, err := c.in.ReadBytes('\n')
		if text, ok := bytes.CutPrefix(line, []byte(c.expect)); ok && err == nil {
			if err := json.Unmarshal(text, message); err != nil {
				return fmt.Errorf("verify: receive: %w", err)
			}
			return nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			_, _ = c.other.Write(line) // no reader waits for it
		}
		if err != nil {
			return err //nolint:wrapcheck // io.EOF marks the end of the messages
		}
	}
}
