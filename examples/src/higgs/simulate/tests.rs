use std::path::Path;

use super::random::Random;
use super::{HEADER, decay, event, mass, simulated, sum, with_mass};

#[test]
fn a_decay_conserves_energy_and_momentum_and_gives_the_masses() {
    let mut random = Random::for_event(3, 14);
    for _ in 0..1000 {
        let parent = with_mass(130.0 + 400.0 * random.uniform(), random.direction().map(|x| x * 700.0));
        let [a, b] = decay(parent, [80.4, 4.7], &mut random);
        assert!(
            sum(a, b).iter().zip(parent).all(|(found, expected)| (found - expected).abs() < 1e-9),
            "{a:?}, {b:?}, {parent:?}"
        );
        assert!((mass(a) - 80.4).abs() < 1e-6 && (mass(b) - 4.7).abs() < 1e-4, "masses {}, {}", mass(a), mass(b));
    }
}

#[test]
fn columns_are_like_those_of_the_real_set() {
    let rows: Vec<_> = (0..20_000).map(|i| event(4, i)).collect();
    let labels: Vec<f32> = rows.iter().map(|row| f32::from(u8::from(row.0))).collect();
    let mean = |values: &[f32]| values.iter().map(|&value| f64::from(value)).sum::<f64>() / values.len() as f64;
    assert!((mean(&labels) - 0.53).abs() < 0.015, "53 % is signal");
    for (c, name) in HEADER.split(',').skip(1).enumerate() {
        let mut values: Vec<f32> = rows.iter().map(|row| row.1[c]).collect();
        let is_angle = name.ends_with("eta") || name.ends_with("phi");
        let moment = if is_angle { mean(&values.iter().map(|x| x * x).collect::<Vec<_>>()) } else { mean(&values) };
        assert!((moment - 1.0).abs() < 0.03, "{name}: {moment}");
        values.sort_unstable_by(f32::total_cmp);
        values.dedup();
        assert_eq!(values.len() == 3, name.ends_with("b-tag"), "{name}: only a b-tag takes three values");
        let (least, most) = (values[0], values[values.len() - 1]);
        assert!(most < 30.0 && if is_angle { least > -3.0 } else { least >= 0.0 }, "{name}: {least} to {most}");
    }
    // The pair of b quarks comes from one particle only in the signal.
    let spread = |is_signal: bool| {
        let mut m_bb: Vec<f32> = rows.iter().filter(|row| row.0 == is_signal).map(|row| row.1[25]).collect();
        m_bb.sort_unstable_by(f32::total_cmp);
        (m_bb[3 * m_bb.len() / 4] - m_bb[m_bb.len() / 4]) / m_bb[m_bb.len() / 2]
    };
    assert!(spread(true) < 0.6 * spread(false), "m_bb peaks only in the signal: {}, {}", spread(true), spread(false));
}

#[test]
fn a_file_reads_back_unchanged_and_is_written_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = |rows, expected: &str| {
        let note = |said: &str| assert!(said.starts_with(expected), "{said}");
        simulated(folder.path(), 3, rows, &note).expect("the folder can be written to")
    };
    let read = |path: &Path| std::fs::read_to_string(path).expect("it was just written");
    // More than one chunk.
    let long = read(&file(1..70_000, "simulating 69999 collisions"));
    let path = file(100..350, "simulating 250 collisions");
    let text = read(&path);
    assert_eq!((long.lines().count(), text.lines().count()), (70_000, 251), "a header, and a line for each event");
    assert!(text.lines().skip(1).eq(long.lines().skip(100).take(250)), "a range has the rows of a longer one");
    let values: Vec<f32> = text.lines().nth(1).expect("a row").split(',').map(|cell| cell.parse().expect("a number")).collect();
    assert_eq!((values[0] == 1.0, &values[1..]), (event(3, 100).0, &event(3, 100).1[..]));
    assert!((0..100).all(|i| event(3, i).1 != event(4, i).1 && event(3, i).1 != event(3, i + 1).1), "events differ");

    file(100..350, "simulated collisions of an earlier run");
    let other = read(&file(99..349, "simulating"));
    for bad in [&other, &text[..text.len() - 1], &text.replacen("label", "signal", 1), ""] {
        std::fs::write(&path, bad).expect("it can be replaced");
        file(100..350, "simulating");
    }
    let error = simulated(Path::new("no/such/folder"), 1, 0..10, &|_| ()).expect_err("there is no such folder");
    assert!(error.to_string().contains("no/such/folder"), "{error}");
}
