package mcpserver

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolResult is the result of a call. All fields except Untrusted have only texts of this program.
type toolResult struct {
	// Summary is one sentence.
	Summary string `json:"summary"`
	// Notice describes the missing part of the result, and how to read it.
	Notice  string   `json:"notice,omitempty"`
	Hub     string   `json:"hub"`
	Preview *preview `json:"preview,omitempty"`
	// Runbooks are sections of the pages in docs/operate.
	Runbooks []section `json:"runbooks,omitempty"`
	// Untrusted holds all that the hub has stored.
	Untrusted untrusted `json:"untrusted,omitzero"`

	// cursor is the cursor of the next page, which the data has too.
	cursor string
}

// notifyf sets the notice.
func (a *toolResult) notifyf(format string, args ...any) { a.Notice = fmt.Sprintf(format, args...) }

// untrusted is data of the hub, whose texts are escaped: Text is that of the command, and Data that of the HTTP API.
type untrusted struct {
	Text string          `json:"text,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

// preview is the result of a call that would change something.
type preview struct {
	// Effect describes the change.
	Effect string `json:"effect"`
	// Confirmation is the argument of the call that makes the change, until ExpiresAt.
	Confirmation string    `json:"confirmation"`
	ExpiresAt    time.Time `json:"expiresAt"`
}

// list is a list of encoded items under a name.
type list struct {
	name  string
	items []json.RawMessage
}

func encodeItems[T any](items []T) ([]json.RawMessage, error) {
	docs := make([]json.RawMessage, 0, len(items))
	for i := range items {
		doc, err := encodeItem(&items[i])
		if err != nil {
			return nil, err
		}
		docs = append(docs, doc)
	}
	return docs, nil
}

// setData sets the text and the data: the fields of head, which is an object, and lists.
func (a *toolResult) setData(text string, head any, lists ...list) error {
	a.Untrusted.Text = boundedText(text, maxTextBytes)
	doc, err := encodeItem(head)
	if err != nil {
		return err
	}
	for _, l := range lists {
		items, err := json.Marshal(append([]json.RawMessage{}, l.items...))
		if err != nil {
			return fmt.Errorf("encode %s: %w", l.name, err)
		}
		doc = doc[:len(doc)-1]
		if len(doc) > 1 {
			doc = append(doc, ',')
		}
		doc = slices.Concat(doc, fmt.Appendf(nil, "%q:", l.name), items, []byte("}"))
	}
	a.Untrusted.Data = doc
	return nil
}

// result returns the result as a structured document, and as a text that has the same text of the command.
func (a *toolResult) result() (*mcp.CallToolResult, error) {
	doc, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("encode a result: %w", err)
	}
	if len(doc) > maxResultBytes {
		return nil, errResultTooLarge
	}
	text, err := a.text()
	if err != nil {
		return nil, err
	}
	return &mcp.CallToolResult{
		Content: []mcp.Content{&mcp.TextContent{Text: text}}, StructuredContent: json.RawMessage(doc),
	}, nil
}

// text returns the result for clients that ignore structured content. Text of the hub is a JSON string in it. They
// continue a list with its cursor.
func (a *toolResult) text() (string, error) {
	short := struct {
		Summary    string    `json:"summary"`
		Notice     string    `json:"notice,omitempty"`
		Preview    *preview  `json:"preview,omitempty"`
		Runbooks   []section `json:"runbooks,omitempty"`
		Untrusted  string    `json:"untrusted,omitempty"`
		NextCursor string    `json:"nextCursor,omitempty"`
	}{a.Summary, a.Notice, a.Preview, a.Runbooks, a.Untrusted.Text, a.cursor}
	doc, err := json.MarshalIndent(short, "", " ")
	if err != nil {
		return "", fmt.Errorf("encode a text: %w", err)
	}
	return string(doc), nil
}

// failed returns the result of a call that failed. The message can quote texts of the hub.
func failed(message string) *mcp.CallToolResult {
	doc, err := json.Marshal(struct {
		Error string `json:"error"`
	}{boundedText(message, maxTextBytes)})
	if err != nil {
		panic(err) // of a string
	}
	return &mcp.CallToolResult{
		IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(doc)}},
		StructuredContent: json.RawMessage(doc),
	}
}
