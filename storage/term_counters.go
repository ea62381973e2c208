package storage

// counters are numbers of four bits, one for each doc of a group: their bits of weight one, two, four and eight. With
// full adders, 64 of them are added to at once.
type counters struct{ one, two, four, eight uint64 }

// counterOf gives a counter of n for each doc.
func counterOf(n int) counters {
	bit := func(i int) uint64 { return -uint64(n >> i & 1) }
	return counters{bit(0), bit(1), bit(2), bit(3)}
}

// add counts the docs of four slices, and gives those whose counters overflow. Full adders make of three bits of a
// weight one of it and one of twice as much.
func (n *counters) add(a, b, c, d uint64) (over uint64) {
	u := n.one ^ a
	two1 := n.one&a | u&b
	one := u ^ b
	u = one ^ c
	two2 := one&c | u&d
	n.one = u ^ d
	u = n.two ^ two1
	four1 := n.two&two1 | u&two2
	n.two = u ^ two2
	eight1 := n.four & four1
	n.four ^= four1
	over = n.eight & eight1
	n.eight ^= eight1
	return over
}

// passedFour gives the docs whose counters overflow with four slices. It and passedEight have the text of add, which
// the compiler doesn't inline: most searches use one of them.
func passedFour(passed []uint64, begin counters, s0, s1, s2, s3 []uint64) {
	s0, s1, s2, s3 = s0[:len(passed)], s1[:len(passed)], s2[:len(passed)], s3[:len(passed)]
	for i := range passed {
		a, b, c, d := s0[i], s1[i], s2[i], s3[i]
		u := begin.one ^ a
		two1 := begin.one&a | u&b
		one := u ^ b
		two2 := one&c | (one^c)&d
		four1 := begin.two&two1 | (begin.two^two1)&two2
		passed[i] = begin.eight & begin.four & four1
	}
}

// passedEight gives the docs whose counters overflow with eight slices.
func passedEight(passed []uint64, begin counters, s *[8][]uint64) {
	s0, s1, s2, s3 := s[0][:len(passed)], s[1][:len(passed)], s[2][:len(passed)], s[3][:len(passed)]
	s4, s5, s6, s7 := s[4][:len(passed)], s[5][:len(passed)], s[6][:len(passed)], s[7][:len(passed)]
	for i := range passed {
		a, b, c, d := s0[i], s1[i], s2[i], s3[i]
		u := begin.one ^ a
		two1 := begin.one&a | u&b
		one := u ^ b
		u = one ^ c
		two2 := one&c | u&d
		one = u ^ d
		u = begin.two ^ two1
		four1 := begin.two&two1 | u&two2
		two := u ^ two2
		eight1 := begin.four & four1
		four, eight := begin.four^four1, begin.eight^eight1
		over := begin.eight & eight1

		a, b, c, d = s4[i], s5[i], s6[i], s7[i]
		u = one ^ a
		two1 = one&a | u&b
		one = u ^ b
		two2 = one&c | (one^c)&d
		four1 = two&two1 | (two^two1)&two2
		passed[i] = over | eight&four&four1
	}
}
