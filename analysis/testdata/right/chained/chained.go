// Package chained has methods that call the next method twice. The linter visits each method once.
package chained

import "github.com/perdure/perdure"

type flow struct {
	ctx  *perdure.OrchestrationContext
	seen int
}

func order(ctx *perdure.OrchestrationContext, in map[string]int) (int, error) {
	f := &flow{ctx: ctx}
	for range in {
		f.m01()
	}
	return f.seen, nil
}

func (f *flow) m01() { f.m02(); f.m02() }
func (f *flow) m02() { f.m03(); f.m03() }
func (f *flow) m03() { f.m04(); f.m04() }
func (f *flow) m04() { f.m05(); f.m05() }
func (f *flow) m05() { f.m06(); f.m06() }
func (f *flow) m06() { f.m07(); f.m07() }
func (f *flow) m07() { f.m08(); f.m08() }
func (f *flow) m08() { f.m09(); f.m09() }
func (f *flow) m09() { f.m10(); f.m10() }
func (f *flow) m10() { f.m11(); f.m11() }
func (f *flow) m11() { f.m12(); f.m12() }
func (f *flow) m12() { f.m13(); f.m13() }
func (f *flow) m13() { f.m14(); f.m14() }
func (f *flow) m14() { f.m15(); f.m15() }
func (f *flow) m15() { f.m16(); f.m16() }
func (f *flow) m16() { f.m17(); f.m17() }
func (f *flow) m17() { f.m18(); f.m18() }
func (f *flow) m18() { f.m19(); f.m19() }
func (f *flow) m19() { f.m20(); f.m20() }
func (f *flow) m20() { f.m21(); f.m21() }
func (f *flow) m21() { f.m22(); f.m22() }
func (f *flow) m22() { f.m23(); f.m23() }
func (f *flow) m23() { f.m24(); f.m24() }
func (f *flow) m24() { f.m25(); f.m25() }
func (f *flow) m25() { f.m26(); f.m26() }
func (f *flow) m26() { f.m27(); f.m27() }
func (f *flow) m27() { f.m28(); f.m28() }
func (f *flow) m28() { f.m29(); f.m29() }
func (f *flow) m29() { f.m30(); f.m30() }
func (f *flow) m30() { f.m31(); f.m31() }
func (f *flow) m31() { f.m32(); f.m32() }
func (f *flow) m32() { f.m33(); f.m33() }
func (f *flow) m33() { f.m34(); f.m34() }
func (f *flow) m34() { f.m35(); f.m35() }
func (f *flow) m35() { f.m36(); f.m36() }
func (f *flow) m36() { f.m37(); f.m37() }
func (f *flow) m37() { f.m38(); f.m38() }
func (f *flow) m38() { f.m39(); f.m39() }
func (f *flow) m39() { f.m40(); f.m40() }
func (f *flow) m40() { f.seen++ }
