package rehearsal

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/perdure/perdure/history"
	"github.com/perdure/perdure/provider"
)

// Variable is the environment variable that has an orchestrator's binary replay histories instead of serving its hub. Its value is Protocol.
const Variable = "PERDURE_VERIFY"

// Protocol is what both sides speak: a line for each message, of JSON. Those of the binary begin with this word, since the code that it runs may
// print lines of its own.
const Protocol = "perdure.verify/1"

// Asked reports whether the environment asks a binary to replay histories.
func Asked(getenv func(string) string) bool { return getenv(Variable) == Protocol }

// Request is a message to the binary: an execution to replay, or the answer to what it wanted.
type Request struct {
	Replay *History `json:"replay,omitempty"`
	// Bucket is, with Replay, that the binary may ask for objects of the hub's bucket. Who asks of an earlier release does not know how to answer that.
	Bucket bool `json:"bucket,omitempty"`
	// Document is what was wanted; Problem is why it cannot be had.
	Document json.RawMessage `json:"document,omitempty"`
	Problem  string          `json:"problem,omitempty"`
	// Bytes is how many bytes of an object follow the line, as they are: 40 MiB as JSON would be several times in memory.
	Bytes int64 `json:"bytes,omitempty"`
}

// History is an execution to replay.
type History struct {
	InstanceID  string          `json:"instanceId"`
	ExecutionID string          `json:"executionId"`
	Events      []history.Event `json:"events"`
}

// Reply is a message of the binary, with one of its fields.
type Reply struct {
	// Ready comes first: the versions of each orchestration that the binary has.
	Ready map[string][]string `json:"ready,omitempty"`
	// Wanted is a document that the history refers to: a Request with it is due.
	Wanted *history.Reference `json:"wanted,omitempty"`
	// Object is the key of an object of the bucket that is wanted: a Request with its Bytes is due, and these.
	Object string `json:"object,omitempty"`
	// Verdict ends a replay.
	Verdict *Verdict `json:"verdict,omitempty"`
}

// Verdict is what became of a replay.
type Verdict struct {
	// Problem is why the code would block the instance; empty is that it goes on.
	Problem string `json:"problem,omitempty"`
	// EventID is where history and code differ; 0 where the problem is another.
	EventID int64 `json:"eventId,omitempty"`
	// Unread is why the replay could not be made, which says nothing of the code.
	Unread string `json:"unread,omitempty"`
	// Blocks is, with Unread, that the binary lacks the codec of a payload: deployed it would block the instance.
	Blocks bool `json:"blocks,omitempty"`
	// OtherInputs is how many decisions have another input than the one recorded, which blocks nothing. FirstInput describes the first.
	OtherInputs int    `json:"otherInputs,omitempty"`
	FirstInput  string `json:"firstInput,omitempty"`
}

// Lines sends and receives messages. Send and Receive are for one goroutine at a time.
type Lines struct {
	in     *bufio.Reader
	out    io.Writer
	prefix string // of what is sent
	expect string // of what is received
	other  io.Writer
}

// BinarySide are the lines of a binary.
func BinarySide(in io.Reader, out io.Writer) *Lines {
	return &Lines{in: bufio.NewReader(in), out: out, prefix: "\n" + Protocol + " ", other: io.Discard}
}

// AskingSide are the lines of who asks a binary. What is no message is written to other.
func AskingSide(in io.Reader, out, other io.Writer) *Lines {
	return &Lines{in: bufio.NewReader(in), out: out, expect: Protocol + " ", other: other}
}

// Send sends a message.
func (l *Lines) Send(message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return fmt.Errorf("rehearsal: %w", err)
	}
	line := append(append([]byte(l.prefix), b...), '\n')
	if _, err := l.out.Write(line); err != nil {
		return fmt.Errorf("rehearsal: send: %w", err)
	}
	return nil
}

// SendObject sends an object that was wanted.
func (l *Lines) SendObject(data []byte) error {
	if err := l.Send(Request{Bytes: int64(len(data))}); err != nil {
		return err
	}
	if _, err := l.out.Write(data); err != nil {
		return fmt.Errorf("rehearsal: send: %w", err)
	}
	return nil
}

// ReceiveObject receives the bytes of an object, behind the message that says how many they are.
func (l *Lines) ReceiveObject(n int64) ([]byte, error) {
	if n < 0 || n > provider.MaxStoredPayloadBytes {
		return nil, fmt.Errorf("rehearsal: receive: an object of %d bytes, of %d at the most", n, provider.MaxStoredPayloadBytes)
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(l.in, data); err != nil {
		return nil, fmt.Errorf("rehearsal: receive: %w", err)
	}
	return data, nil
}

// Receive receives the next message, however long it is. At the end it returns io.EOF.
func (l *Lines) Receive(message any) error {
	for {
		line, err := l.in.ReadBytes('\n')
		if text, ok := bytes.CutPrefix(line, []byte(l.expect)); ok && err == nil {
			if err := json.Unmarshal(text, message); err != nil {
				return fmt.Errorf("rehearsal: receive: %w", err)
			}
			return nil
		}
		if len(bytes.TrimSpace(line)) > 0 {
			_, _ = l.other.Write(line) // nobody waits for it
		}
		if err != nil {
			return err //nolint:wrapcheck // io.EOF is how a conversation ends
		}
	}
}
