package payloads

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/perdure/perdure"
	"github.com/perdure/perdure/history"
)

// Replay decodes and compares the encoded payloads of one execution. It implements replay.PayloadDecoder.
type Replay struct {
	encoding *Encoding
	info     perdure.PayloadInfo
	ctx      context.Context //nolint:containedctx // of the invocation, because replay has no contexts
	// read counts the stored payloads that the code has read within ctx, and their bytes.
	read struct{ payloads, bytes int64 }
}

// ForReplay returns the Replay of an execution. It makes its calls with ctx.
func (e *Encoding) ForReplay(ctx context.Context, info perdure.PayloadInfo) Replay {
	return Replay{encoding: e, info: info, ctx: ctx}
}

// Within replaces the context of the following calls.
func (r *Replay) Within(ctx context.Context) {
	if ctx == r.ctx {
		return
	}
	r.ctx = ctx
	r.read.payloads, r.read.bytes = 0, 0
}

// Open implements replay.PayloadDecoder.
func (r *Replay) Open(of history.EventPayload, next []history.EventPayload) (json.RawMessage, error) {
	if len(next) > 0 {
		r.encoding.prefetch(r.ctx, &of, next)
	}
	doc, err := r.encoding.Decode(r.ctx, r.infoOf(&of), *of.Payload)
	if of.Payload.StorageKey() == "" {
		return doc, err
	}
	if err != nil {
		return nil, r.explainTimeout(err)
	}
	r.read.payloads++
	r.read.bytes += int64(len(doc))
	return doc, nil
}

// explainTimeout adds the amount of data that the code has read to a timeout error. All payloads of a turn are read in
// one invocation, so a turn that reads too much fails each time.
func (r *Replay) explainTimeout(err error) error {
	if r.ctx.Err() == nil || r.read.payloads == 0 {
		return err
	}
	return fmt.Errorf("the invocation timed out after the code read %d large payloads with %d bytes: "+
		"increase InboxTimeout or read less in a turn: %w", r.read.payloads, r.read.bytes, err)
}

// Same implements replay.PayloadDecoder.
func (r *Replay) Same(of history.EventPayload, doc json.RawMessage) (bool, error) {
	return r.encoding.Same(r.ctx, r.infoOf(&of), *of.Payload, doc)
}

func (r *Replay) infoOf(p *history.EventPayload) perdure.PayloadInfo {
	info := r.info
	info.Kind, info.Name = p.Kind, p.Name
	return info
}

// prefetchBytes limits the prefetched payloads, which must remain in the cache until they are read.
const prefetchBytes = cacheBytes / 2

// prefetch reads a stored payload and the next payloads into the cache, unless the cache has the first one. It ignores
// errors, because Decode reads a missing payload again.
func (e *Encoding) prefetch(ctx context.Context, of *history.EventPayload, next []history.EventPayload) {
	if s, ok := of.Payload.Encoded(); !ok || !e.HasStore() || e.cache.has(s.SHA256) {
		return
	}
	var c calls
	remaining := int64(prefetchBytes)
	for _, p := range append([]history.EventPayload{*of}, next...) {
		s, ok := p.Payload.Encoded()
		if remaining -= s.Bytes; !ok || s.Key == "" || s.Bytes > maxCachedBytes || remaining < 0 {
			break
		}
		if !e.cache.has(s.SHA256) {
			c.do(true, func() error {
				_, _ = e.read(ctx, &s)
				return nil
			})
		}
	}
	_ = c.wait() // there are no errors
}
