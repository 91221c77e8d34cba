use super::{LOOK_AHEAD, Marks, Place, exact_number, long_cell, number, number64, simple_cell};

const MARKS: Marks = Marks { delimiter: b',', decimal: b'.' };

type Way = fn(&[u8; LOOK_AHEAD], Marks, Place) -> Option<(f32, usize)>;

/// The result of one of the fast paths, if it handles the cell.
fn fast(way: Way, cell: &str, after: &str) -> Option<f32> {
    let mut text = [b'7'; LOOK_AHEAD];
    let bytes: Vec<u8> = cell.bytes().chain(after.bytes()).collect();
    text[..bytes.len()].copy_from_slice(&bytes);
    let (value, len) = way(&text, MARKS, if after == "," { Place::Inner } else { Place::Last })?;
    assert_eq!(len, bytes.len() - 1, "{cell:?} then {after:?}: the cell ends elsewhere");
    Some(value)
}

/// Checks that all paths give the bits of `str::parse`; returns which of the fast ones handled the cell.
#[track_caller]
fn check(cell: &str) -> [bool; 2] {
    let expected = cell.parse::<f32>().ok().map(f32::to_bits);
    assert_eq!(number(cell.as_bytes(), b'.').map(f32::to_bits), expected, "number({cell:?})");
    if let Some(n) = expected {
        let comma = cell.replace('.', ",");
        assert_eq!(number(comma.as_bytes(), b',').map(f32::to_bits), Some(n), "number({comma:?})");
    }
    let ways: [Way; 2] = [simple_cell, long_cell];
    ways.map(|way| {
        let mut took = false;
        for after in [",", "\n", "\r\n"] {
            if cell.len() < 40
                && let Some(value) = fast(way, cell, after)
            {
                took = true;
                assert_eq!(Some(value.to_bits()), expected, "{cell:?} then {after:?}");
            }
        }
        took
    })
}

#[test]
fn plain_numbers_are_simple() {
    for cell in
        ["0", "1", "-1", "0.5", "-0.0", "0.49833375", "-1.0670769", "0.105929166", "12345678", "3.", "1.0000000000001", "0.000"]
    {
        assert!(check(cell)[0], "{cell} is not simple");
    }
}

#[test]
fn zeros_as_numpy_writes_them_are_fast() {
    assert!(check("0.000000000000000000e+00")[1] && check("-0.000000000000000000e+00")[1]);
    assert!(!check("0.000000000000000001e+00")[1]);
}

#[test]
fn others_are_read_as_std_reads_them() {
    let cells = "1e5 1E-5 -1.5e+3 9.075421094894409180e-01 .5 -.5 +1 1e38 3.4028235e38 3.4028236e38 1e39 -1e400 1e-45 1e-46 1.1754944e-38 \
                 1.17549428e-38 inf -inf nan NaN infinity 16777217 16777219 0.1234567890123456789 00000000000000000000001.5 \
                 123456789012345678901234567890 8.589973e9 4.7019774032891500318749461488889827112746622270883e-38 1e22 1e23 1e-22 1e-44";
    for cell in cells.split_whitespace() {
        check(cell);
    }
}

#[test]
fn what_is_no_number_is_none() {
    for cell in
        ["", "-", ".", "-.", "1.2.3", "1-2", "--1", "1e", "e5", "0x10", "1_000", "1 2", "one", "1:2", "12/4", "١", "1e+-5"]
    {
        assert_eq!(number(cell.as_bytes(), b'.'), None, "{cell:?}");
        assert_eq!(fast(simple_cell, cell, ","), None, "{cell:?}");
        assert_eq!(fast(long_cell, cell, ","), None, "{cell:?}");
    }
    assert_eq!(number(&[0xff, b'1'], b'.'), None);
    assert_eq!(number(b"1.5", b','), None);
}

/// Numbers at the midpoint between two `f32`, slightly above and slightly below, for which rounding twice goes wrong.
#[test]
fn middles_between_floats_are_rounded_exactly() {
    let mut random = Random(7);
    for _ in 0..20_000 {
        let low = f32::from_bits(0x3000_0000 + (random.next() % 0x1a00_0000) as u32);
        let high = f32::from_bits(low.to_bits() + 1);
        let middle = (f64::from(low) + f64::from(high)) / 2.0;
        for bits in [-1_i64, 0, 1] {
            let near = f64::from_bits(middle.to_bits().wrapping_add_signed(bits));
            check(&format!("{near}"));
            check(&format!("{near:e}"));
            check(&format!("{near:.8}"));
        }
    }
}

#[test]
fn random_floats_in_many_forms() {
    let mut random = Random(1);
    let (mut n_simple, mut n_long) = (0, 0);
    for _ in 0..60_000 {
        let any = f32::from_bits(random.next() as u32);
        let usual = (random.next() as u32 as f32 / u32::MAX as f32 - 0.5) * 10_f32.powi((random.next() % 7) as i32 - 2);
        n_simple += usize::from(check(&format!("{usual}"))[0]);
        check(&format!("{any}"));
        check(&format!("{any:e}"));
        check(&format!("{usual:e}"));
        n_long += usize::from(check(&as_numpy(f64::from(usual)))[1]);
        check(&format!("{:.18e}", f64::from(usual)));
        check(&format!("{}", f64::from(usual)));
        check(&format!("{usual:.3}"));
        check(&format!("{usual:.13}"));
        check(&format!("{}", f64::from(usual) * 1.000_000_1));
        check(&format!("{}", random.next() >> (random.next() % 64)));
        check(&format!("{:.*}", (random.next() % 20) as usize, f64::from(usual)));
    }
    assert!(n_simple > 50_000, "the fast path handled only {n_simple} of 60000 usual numbers");
    assert!(n_long > 59_000, "the fast path handled only {n_long} of 60000 numbers as numpy writes them");
}

/// `%.18e`
fn as_numpy(x: f64) -> String {
    let text = format!("{x:.18e}");
    let (mantissa, exponent) = text.split_once('e').unwrap();
    let exponent: i32 = exponent.parse().unwrap();
    format!("{mantissa}e{}{:02}", if exponent < 0 { '-' } else { '+' }, exponent.abs())
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }
}

/// All ways to read a number agree about signs and blanks beyond ASCII, so that an offset is subtracted from each of them.
#[test]
fn the_minus_sign_and_no_break_spaces_are_read() {
    for (cell, decimal, expected) in [
        ("\u{2212}16777217", b'.', Some(-16_777_217.0)),
        ("\u{a0}12.5\u{202f}", b'.', Some(12.5)),
        ("\u{2212}1,5", b',', Some(-1.5)),
        ("1.5", b',', None),
        ("\u{b5}5", b'.', None),
    ] {
        let cell = cell.as_bytes();
        assert_eq!(number64(cell, decimal), expected, "{cell:?}");
        assert_eq!(number(cell, decimal), expected.map(|number| number as f32), "{cell:?}");
        assert_eq!(exact_number(cell, decimal).map(|(exact, _)| exact), expected, "{cell:?}");
    }
}
