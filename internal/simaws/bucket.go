package simaws

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go"

	"github.com/perdure/perdure/provider"
)

// Limits of S3 requests, from the API reference.
const (
	mostKeys    = 1000
	maxKeyBytes = 1024
)

// Bucket simulates S3, with the calls that a provider makes. Like S3, it reads and lists written objects with strong
// consistency. Overwritten data is lost, as in a bucket without versioning.
type Bucket struct {
	cloud *Cloud

	mu      sync.Mutex
	objects map[string]object // by bucket, a slash, and key
}

type object struct {
	data []byte
	at   time.Time
}

// BucketCall is the input of an S3 call, as an [Interceptor] receives it. Data is the written object, To is the key of
// a copy, and Keys are the keys to delete.
type BucketCall struct {
	Bucket, Key, To string
	Data            []byte
	Keys            []string
}

// nothing is the output of a call without an output.
type nothing struct{}

// PutObject writes an object.
func (b *Bucket) PutObject(ctx context.Context, bucket, key string, data []byte) error {
	_, err := do(ctx, b.cloud, opPutObject, &BucketCall{Bucket: bucket, Key: key, Data: data},
		func() (*nothing, error) {
			if key == "" || len(key) > maxKeyBytes {
				return nil, bucketRefusal("KeyTooLongError", "Your key is too long")
			}
			b.mu.Lock()
			defer b.mu.Unlock()

			b.objects[bucket+"/"+key] = object{bytes.Clone(data), b.cloud.now()}

			return &nothing{}, nil
		})

	return err
}

// GetObject reads an object and returns an error if it is larger than most bytes.
func (b *Bucket) GetObject(ctx context.Context, bucket, key string, most int64) ([]byte, error) {
	data, err := do(ctx, b.cloud, opGetObject, &BucketCall{Bucket: bucket, Key: key}, func() (*[]byte, error) {
		b.mu.Lock()
		defer b.mu.Unlock()

		found, ok := b.objects[bucket+"/"+key]
		switch {
		case !ok:
			return nil, provider.ErrNotFound
		case int64(len(found.data)) > most:
			return nil, fmt.Errorf("simaws: object %s has %d bytes: %w", key, len(found.data), provider.ErrCorrupt)
		}

		data := bytes.Clone(found.data)

		return &data, nil
	})
	if err != nil {
		return nil, err
	}

	return *data, nil
}

// CopyObject copies an object within a bucket.
func (b *Bucket) CopyObject(ctx context.Context, bucket, from, to string) error {
	_, err := do(ctx, b.cloud, opCopyObject, &BucketCall{Bucket: bucket, Key: from, To: to}, func() (*nothing, error) {
		b.mu.Lock()
		defer b.mu.Unlock()

		found, ok := b.objects[bucket+"/"+from]
		if !ok {
			return nil, provider.ErrNotFound
		}

		b.objects[bucket+"/"+to] = object{found.data, b.cloud.now()}

		return &nothing{}, nil
	})

	return err
}

// DeleteObjects deletes up to 1,000 objects.
func (b *Bucket) DeleteObjects(ctx context.Context, bucket string, keys []string) error {
	_, err := do(ctx, b.cloud, opDeleteObjects, &BucketCall{Bucket: bucket, Keys: keys}, func() (*nothing, error) {
		if len(keys) == 0 || len(keys) > mostKeys {
			return nil,
				bucketRefusal("MalformedXML",
					"The XML you provided was not well-formed or did not validate against our published schema")
		}

		b.mu.Lock()
		defer b.mu.Unlock()

		for _, key := range keys {
			delete(b.objects, bucket+"/"+key)
		}

		return &nothing{}, nil
	})

	return err
}

// ListObjects lists up to 1,000 keys that start with prefix and sort after the key after, in byte order.
func (b *Bucket) ListObjects(ctx context.Context, bucket, prefix, after string) ([]provider.StoredPayload, error) {
	found, err := do(ctx, b.cloud, opListObjects, &BucketCall{Bucket: bucket, Key: prefix},
		func() (*[]provider.StoredPayload, error) {
			b.mu.Lock()
			defer b.mu.Unlock()

			var found []provider.StoredPayload

			for name, o := range b.objects {
				key, in := strings.CutPrefix(name, bucket+"/")
				if in && strings.HasPrefix(key, prefix) && key > after {
					found = append(found, provider.StoredPayload{Key: key, StoredAt: o.at})
				}
			}

			slices.SortFunc(found, func(a, b provider.StoredPayload) int { return strings.Compare(a.Key, b.Key) })
			found = found[:min(len(found), mostKeys)]

			return &found, nil
		})
	if err != nil {
		return nil, err
	}

	return *found, nil
}

// Keys returns the keys of all objects of a bucket that start with prefix. No interceptor receives the call, and it is
// not counted.
func (b *Bucket) Keys(bucket, prefix string) (keys []string) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for name := range b.objects {
		if key, in := strings.CutPrefix(name, bucket+"/"); in && strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}

	sort.Strings(keys)

	return keys
}

// Expire simulates a lifecycle rule: it deletes objects that start with prefix and are older than age.
func (b *Bucket) Expire(bucket, prefix string, age time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()

	for name, o := range b.objects {
		if strings.HasPrefix(name, bucket+"/"+prefix) && b.cloud.now().Sub(o.at) > age {
			delete(b.objects, name)
		}
	}
}

func bucketRefusal(code, message string) error {
	return &smithy.GenericAPIError{Code: code, Message: message, Fault: smithy.FaultClient}
}
