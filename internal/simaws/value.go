package simaws

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	ddbtypes "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Overheads in the size of an item, as DynamoDB counts it: of a list or map, and of each of its members.
const (
	containerSize = 3
	memberSize    = 1
	flagSize      = 1
)

// typeOf returns DynamoDB's letters for the type of a value, or "" for nil.
func typeOf(v ddbtypes.AttributeValue) string {
	switch v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return "S"
	case *ddbtypes.AttributeValueMemberN:
		return "N"
	case *ddbtypes.AttributeValueMemberB:
		return "B"
	case *ddbtypes.AttributeValueMemberBOOL:
		return "BOOL"
	case *ddbtypes.AttributeValueMemberNULL:
		return "NULL"
	case *ddbtypes.AttributeValueMemberSS:
		return "SS"
	case *ddbtypes.AttributeValueMemberNS:
		return "NS"
	case *ddbtypes.AttributeValueMemberBS:
		return "BS"
	case *ddbtypes.AttributeValueMemberL:
		return "L"
	case *ddbtypes.AttributeValueMemberM:
		return "M"
	default:
		return ""
	}
}

// sizeOf returns the size of an item in bytes, as DynamoDB counts it. It rejects values that DynamoDB does not accept.
func sizeOf(it item) (int, error) {
	size := 0

	for name, v := range it {
		n, err := valueSize(v)
		if err != nil {
			return 0, err
		}

		size += len(name) + n
	}

	return size, nil
}

func valueSize(v ddbtypes.AttributeValue) (int, error) {
	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberS:
		return len(v.Value), nil
	case *ddbtypes.AttributeValueMemberB:
		return len(v.Value), nil
	case *ddbtypes.AttributeValueMemberN:
		return numberSize(v.Value)
	case *ddbtypes.AttributeValueMemberBOOL, *ddbtypes.AttributeValueMemberNULL:
		return flagSize, nil
	case *ddbtypes.AttributeValueMemberL:
		return listSize(v.Value)
	case *ddbtypes.AttributeValueMemberM:
		n, err := sizeOf(v.Value)

		return containerSize + memberSize*len(v.Value) + n, err
	default:
		return setSize(v)
	}
}

func listSize(list []ddbtypes.AttributeValue) (int, error) {
	size := containerSize + memberSize*len(list)

	for _, v := range list {
		n, err := valueSize(v)
		if err != nil {
			return 0, err
		}

		size += n
	}

	return size, nil
}

// numberSize returns the size of a number: one byte for two digits, and one more byte.
func numberSize(s string) (int, error) {
	if _, ok := smallInt(s); ok {
		return len(s)/2 + 1, nil
	}

	d, err := parseDecimal(s)

	return (len(d.digits)+1)/2 + 1, err
}

func setSize(v ddbtypes.AttributeValue) (int, error) {
	var size, count int

	switch v := v.(type) {
	case *ddbtypes.AttributeValueMemberSS:
		count = len(v.Value)
		for _, s := range v.Value {
			size += len(s)
		}
	case *ddbtypes.AttributeValueMemberBS:
		count = len(v.Value)
		for _, b := range v.Value {
			size += len(b)
		}
	case *ddbtypes.AttributeValueMemberNS:
		count = len(v.Value)
		for _, s := range v.Value {
			n, err := numberSize(s)
			if err != nil {
				return 0, err
			}

			size += n
		}
	default:
		return 0, invalid("Supplied AttributeValue is empty, must contain exactly one of the supported datatypes")
	}

	if count == 0 {
		return 0, invalid("One or more parameter values were invalid: An string set  may not be empty")
	}

	return size, nil
}

// isolate returns a copy of an input item with its numbers in stored form.
func isolate(it item) (item, error) { return storedForm(maps.Clone(it)) }

// storedForm converts the numbers of an item to stored form, in place. It does not convert numbers in lists and maps.
func storedForm(it item) (item, error) {
	for name, v := range it {
		n, ok := v.(*ddbtypes.AttributeValueMemberN)
		if !ok {
			continue
		}

		text, err := canonical(n.Value)
		if err != nil {
			return nil, err
		}

		if text != n.Value {
			it[name] = &ddbtypes.AttributeValueMemberN{Value: text}
		}
	}

	return it, nil
}

// compare compares two values. ok is false if their type has no order.
func compare(a, b ddbtypes.AttributeValue) (order int, ok bool) {
	switch a := a.(type) {
	case *ddbtypes.AttributeValueMemberS:
		if b, same := b.(*ddbtypes.AttributeValueMemberS); same {
			return strings.Compare(a.Value, b.Value), true
		}
	case *ddbtypes.AttributeValueMemberN:
		if b, same := b.(*ddbtypes.AttributeValueMemberN); same {
			return compareNumbers(a.Value, b.Value), true
		}
	case *ddbtypes.AttributeValueMemberB:
		if b, same := b.(*ddbtypes.AttributeValueMemberB); same {
			return bytes.Compare(a.Value, b.Value), true
		}
	}

	return 0, false
}

// equal implements "=" of DynamoDB: equal types and values. It ignores the order of sets.
func equal(a, b ddbtypes.AttributeValue) bool {
	if order, ok := compare(a, b); ok {
		return order == 0
	}

	switch a := a.(type) {
	case *ddbtypes.AttributeValueMemberBOOL:
		b, same := b.(*ddbtypes.AttributeValueMemberBOOL)

		return same && a.Value == b.Value
	case *ddbtypes.AttributeValueMemberNULL:
		_, same := b.(*ddbtypes.AttributeValueMemberNULL)

		return same
	case *ddbtypes.AttributeValueMemberL:
		b, same := b.(*ddbtypes.AttributeValueMemberL)

		return same && slices.EqualFunc(a.Value, b.Value, equal)
	case *ddbtypes.AttributeValueMemberM:
		b, same := b.(*ddbtypes.AttributeValueMemberM)

		return same && maps.EqualFunc(a.Value, b.Value, equal)
	default:
		return equalSets(a, b)
	}
}

func equalSets(a, b ddbtypes.AttributeValue) bool {
	switch a := a.(type) {
	case *ddbtypes.AttributeValueMemberSS:
		b, same := b.(*ddbtypes.AttributeValueMemberSS)

		return same && slices.Equal(sorted(a.Value, strings.Compare), sorted(b.Value, strings.Compare))
	case *ddbtypes.AttributeValueMemberNS:
		b, same := b.(*ddbtypes.AttributeValueMemberNS)

		return same && slices.EqualFunc(sorted(a.Value, compareNumbers), sorted(b.Value, compareNumbers),
			func(x, y string) bool { return compareNumbers(x, y) == 0 })
	case *ddbtypes.AttributeValueMemberBS:
		b, same := b.(*ddbtypes.AttributeValueMemberBS)

		return same && slices.EqualFunc(sorted(a.Value, bytes.Compare), sorted(b.Value, bytes.Compare), bytes.Equal)
	default:
		return false
	}
}

func sorted[T any](values []T, order func(a, b T) int) []T {
	out := slices.Clone(values)
	slices.SortFunc(out, order)

	return out
}
