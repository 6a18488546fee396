package meter

import (
	"context"

	"github.com/perdure/perdure/internal/pricing"
	"github.com/perdure/perdure/provider"
	"github.com/perdure/perdure/provider/dynamo"
)

// Bucket returns a BucketAPI that counts the calls of b. The provider calls S3 without an SDK client.
func (m *Meter) Bucket(b dynamo.BucketAPI) dynamo.BucketAPI { return &bucket{m, b} }

type bucket struct {
	meter *Meter
	dynamo.BucketAPI
}

// count counts a call. S3 also bills calls that fail, except for errors of the service.
func (b *bucket) count(operation, key string, bytes, entries int, billed pricing.Item, err error) {
	o := observation{
		kind:  Kind{Call: "S3." + operation},
		count: Count{Calls: 1, Entries: float64(entries), Bytes: float64(bytes)},
	}
	if billed != "" {
		o.count.Usage = pricing.Usage{billed: 1}
	}
	if err != nil {
		o.count.Failed = 1
	}
	if execution := provider.ExecutionOfPayload(key); execution != "" {
		o.owners = []owner{{pk: prefixExecution + execution}}
	}
	b.meter.add(&o)
}

func (b *bucket) PutObject(ctx context.Context, name, key string, data []byte) error {
	err := b.BucketAPI.PutObject(ctx, name, key, data)
	b.count("PutObject", key, len(data), 1, pricing.ObjectWrites, err)
	return err
}

func (b *bucket) GetObject(ctx context.Context, name, key string, most int64) ([]byte, error) {
	data, err := b.BucketAPI.GetObject(ctx, name, key, most)
	b.count("GetObject", key, len(data), 1, pricing.ObjectReads, err)
	return data, err
}

func (b *bucket) CopyObject(ctx context.Context, name, from, to string) error {
	err := b.BucketAPI.CopyObject(ctx, name, from, to)
	b.count("CopyObject", to, 0, 1, pricing.ObjectWrites, err)
	return err
}

// DeleteObjects counts a call, which is free.
func (b *bucket) DeleteObjects(ctx context.Context, name string, keys []string) error {
	err := b.BucketAPI.DeleteObjects(ctx, name, keys)
	b.count("DeleteObjects", keys[0], 0, len(keys), "", err)
	return err
}

// ListObjects counts a call, which is billed like a write.
func (b *bucket) ListObjects(ctx context.Context, name, prefix, after string) ([]provider.StoredPayload, error) {
	all, err := b.BucketAPI.ListObjects(ctx, name, prefix, after)
	b.count("ListObjects", prefix, 0, len(all), pricing.ObjectWrites, err)
	return all, err
}
