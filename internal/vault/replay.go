package vault

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Replay decodes and compares the encoded payloads of one execution. It implements replay.Seals.
type Replay struct {
	vault *Vault
	about perdure.PayloadInfo
	ctx   context.Context //nolint:containedctx // that of the invocation in which the code runs: replay knows of none
	// opened is how many payloads of the store the code has taken within ctx, and how many bytes they have.
	opened struct{ payloads, bytes int64 }
}

// ForReplay returns the Replay of an execution. It makes its calls with ctx.
func (v *Vault) ForReplay(ctx context.Context, about perdure.PayloadInfo) Replay {
	return Replay{vault: v, about: about, ctx: ctx}
}

// Within replaces the context of the following calls.
func (r *Replay) Within(ctx context.Context) {
	if ctx == r.ctx {
		return
	}
	r.ctx = ctx
	r.opened.payloads, r.opened.bytes = 0, 0
}

// Open implements replay.Seals.
func (r *Replay) Open(of history.EventPayload, ahead []history.EventPayload) (json.RawMessage, error) {
	if len(ahead) > 0 {
		r.vault.fetch(r.ctx, &of, ahead)
	}
	doc, err := r.vault.Open(r.ctx, r.of(&of), *of.Payload)
	if of.Payload.StorageKey() == "" {
		return doc, err
	}
	if err != nil {
		return nil, r.outOfTime(err)
	}
	r.opened.payloads++
	r.opened.bytes += int64(len(doc))
	return doc, nil
}

// outOfTime says of an error whether it is that the invocation has taken as much as it can: what the code takes within a turn is read in one, each time anew.
func (r *Replay) outOfTime(err error) error {
	if r.ctx.Err() == nil || r.opened.payloads == 0 {
		return err
	}
	return fmt.Errorf("the invocation timed out after the code read %d large payloads with %d bytes: increase InboxTimeout or read less in a turn: %w", r.opened.payloads, r.opened.bytes, err)
}

// Same implements replay.Seals.
func (r *Replay) Same(of history.EventPayload, doc json.RawMessage) (bool, error) {
	return r.vault.Same(r.ctx, r.of(&of), *of.Payload, doc)
}

func (r *Replay) of(p *history.EventPayload) perdure.PayloadInfo {
	about := r.about
	about.Kind, about.Name = p.Kind, p.Name
	return about
}
