//! The properties of the simulation: consistent physics, a table that is a function of its seed, columns that can be
//! recomputed.

use std::path::Path;

use super::collision::Process;
use super::columns::{NAMES, masses};
use super::decay::{Resonance, rest_frame_momentum, two_body};
use super::four_vector::{FourVector, delta_r_squared};
use super::random::Random;
use super::{SimulatedFile, Simulation, VERSION, attempt, write_csv};

#[track_caller]
fn check_close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "found {found}, expected {expected} within {tolerance}");
}

#[track_caller]
fn check_same_vector(found: FourVector, expected: FourVector, tolerance: f64) {
    for (a, b) in [(found.e, expected.e), (found.px, expected.px), (found.py, expected.py), (found.pz, expected.pz)] {
        check_close(a, b, tolerance);
    }
}

#[test]
fn a_boost_adds_the_parents_velocity() {
    // A 3-4-5 triangle: mass 3, momentum 4, energy 5 along z, so γ = 5/3 and γβ = 4/3.
    let parent = FourVector { e: 5.0, px: 0.0, py: 0.0, pz: 4.0 };
    let at_rest = FourVector { e: 3.0, px: 1.0, py: 2.0, pz: 0.5 };
    let expected = FourVector { e: (5.0 * 3.0 + 4.0 * 0.5) / 3.0, px: 1.0, py: 2.0, pz: (5.0 * 0.5 + 4.0 * 3.0) / 3.0 };
    check_same_vector(at_rest.boosted_from_rest_of(&parent, 3.0), expected, 1e-12);
}

#[test]
fn detector_coordinates_and_back() {
    let v = FourVector::massless(37.5, -1.7, 2.9);
    check_close(v.pt(), 37.5, 1e-12);
    check_close(v.eta(), -1.7, 1e-12);
    check_close(v.phi(), 2.9, 1e-12);
    check_close(v.mass(), 0.0, 1e-5);
    assert!(v.is_central(1.71_f64.sinh()) && !v.is_central(1.69_f64.sinh()), "|η| = 1.7 is inside 1.71 and outside 1.69");
}

#[test]
fn small_distances_are_those_of_eta_and_phi() {
    let a = FourVector::massless(50.0, 1.2, 3.1);
    let b = FourVector::massless(20.0, 1.4, 3.1 + 0.3 - 2.0 * std::f64::consts::PI);
    // Fourth order: cosh and cos differ from their parabolas by Δ⁴/12.
    check_close(delta_r_squared(&a, &b), 0.2 * 0.2 + 0.3 * 0.3, 1e-3);
}

#[test]
fn a_decay_conserves_energy_and_momentum_and_gives_the_masses() {
    let mut random = Random::for_event(3, 14);
    for _ in 0..1000 {
        let mass = random.uniform_in(130.0, 500.0);
        let momentum = random.on_sphere().map(|c| c * 700.0);
        let parent = FourVector::with_mass(mass, momentum);
        let [a, b] = two_body(&parent, mass, 80.4, 4.7, &mut random).expect("the parent is heavier than both");
        check_same_vector(a + b, parent, 1e-9);
        check_close(a.mass(), 80.4, 1e-6);
        check_close(b.mass(), 4.7, 1e-4);
    }
}

#[test]
fn a_decay_into_something_heavier_does_not_happen() {
    let at_rest = FourVector::with_mass(160.0, [0.0; 3]);
    assert_eq!(two_body(&at_rest, 160.0, 80.4, 80.4, &mut Random::for_event(0, 0)), None);
    assert_eq!(rest_frame_momentum(160.0, 80.0, 80.0), Some(0.0));
    // Two massless decay products share the energy.
    assert_eq!(rest_frame_momentum(125.0, 0.0, 0.0), Some(62.5));
}

#[test]
fn decays_are_isotropic() {
    let mut random = Random::for_event(9, 2);
    let at_rest = FourVector::with_mass(125.0, [0.0; 3]);
    let n = 40_000;
    let mut moments = [0.0; 4];
    for _ in 0..n {
        let [a, _] = two_body(&at_rest, 125.0, 0.0, 0.0, &mut random).expect("125 GeV is enough for two photons");
        for (moment, value) in moments.iter_mut().zip([a.px / 62.5, a.py / 62.5, a.pz / 62.5, (a.pz / 62.5).powi(2)]) {
            *moment += value / f64::from(n);
        }
    }
    // 4.5 standard errors: √(1/3n) and √(4/45n).
    for mean in &moments[..3] {
        check_close(*mean, 0.0, 0.013);
    }
    check_close(moments[3], 1.0 / 3.0, 0.007);
}

#[test]
fn masses_follow_the_breit_wigner_curve() {
    let w = Resonance { mass: 80.4, width: 2.1 };
    let mut random = Random::for_event(5, 5);
    let mut masses: Vec<f64> = (0..20_000).map(|_| w.draw_mass(&mut random)).collect();
    masses.sort_by(f64::total_cmp);
    // Half of it lies within half a width of the peak, a quarter on either side.
    check_close(masses[10_000], 80.4, 0.06);
    check_close(masses[15_000] - masses[5_000], 2.1, 0.12);
    assert!(masses[0] > 40.0 && masses[19_999] < 110.0, "masses stay near the peak: {} to {}", masses[0], masses[19_999]);
}

#[test]
fn normal_and_uniform_numbers_have_their_moments() {
    let mut random = Random::for_event(1, 1);
    let n = 100_000;
    let (mut mean, mut square, mut uniform) = (0.0, 0.0, 0.0);
    for _ in 0..n {
        let x = random.normal();
        mean += x / f64::from(n);
        square += x * x / f64::from(n);
        uniform += random.uniform() / f64::from(n);
    }
    check_close(mean, 0.0, 0.015);
    check_close(square, 1.0, 0.02);
    check_close(uniform, 0.5, 0.005);
}

/// Before the detector, all momenta add up to those of the produced system.
#[test]
fn the_true_products_have_the_masses_they_came_from() {
    for (process, low, high) in [(Process::Higgs, 300.0, 550.0), (Process::TopPair, 310.0, 2000.0)] {
        for event in 0..500 {
            let mut random = Random::for_event(11, event);
            let Some(collision) = process.collide(7, &mut random) else { continue };
            let [b_1, b_2, q_1, q_2, ref radiated @ ..] = collision.partons;
            let (hadronic, leptonic) = (q_1 + q_2, collision.lepton + collision.neutrino);
            for w in [hadronic, leptonic] {
                assert!((45.0..110.0).contains(&w.mass()), "{process:?}: a W of {} GeV", w.mass());
            }
            match process {
                Process::Higgs => check_close((b_1 + b_2).mass(), 125.0, 0.1),
                Process::TopPair => {
                    let one = ((hadronic + b_1).mass() - 172.5).abs().max(((leptonic + b_2).mass() - 172.5).abs());
                    let other = ((hadronic + b_2).mass() - 172.5).abs().max(((leptonic + b_1).mass() - 172.5).abs());
                    assert!(one.min(other) < 18.0, "neither pairing gives two tops: off by {one} and {other} GeV");
                }
            }
            let all = b_1 + b_2 + hadronic + leptonic;
            assert!((low..high).contains(&all.mass()), "{process:?}: all of it has {} GeV", all.mass());
            // Radiated jets and the rest balance transverse to the beam.
            let balance = radiated.iter().fold(all, |sum, &jet| sum + jet);
            check_close(balance.px, 0.0, 1e-9);
            check_close(balance.py, 0.0, 1e-9);
        }
    }
}

#[test]
fn the_detector_keeps_its_cuts() {
    let mut random = Random::for_event(21, 0);
    let mut n_seen = 0;
    for _ in 0..4000 {
        let Some(seen) = attempt(Process::TopPair, &mut random) else { continue };
        n_seen += 1;
        assert!(seen.lepton.pt() > 20.0 && seen.lepton.eta().abs() < 2.5, "the lepton is in acceptance");
        assert!(seen.jets.windows(2).all(|pair| pair[0].momentum.pt() >= pair[1].momentum.pt()), "jets come hardest first");
        for jet in &seen.jets {
            assert!(jet.momentum.pt() > 20.0 && jet.momentum.eta().abs() < 2.5, "a jet is in acceptance");
            assert!(delta_r_squared(&jet.momentum, &seen.lepton) >= 0.16, "the lepton is isolated");
        }
    }
    assert!(n_seen > 800, "about three in ten top pairs pass, but {n_seen} of 4000 did");
}

#[test]
fn an_event_depends_only_on_seed_and_number() {
    let one = Simulation { seed: 7 };
    let forwards: Vec<_> = (0..200).map(|i| one.event(i)).collect();
    let mut backwards: Vec<_> = (0..200).rev().map(|i| Simulation { seed: 7 }.event(i)).collect();
    backwards.reverse();
    assert_eq!(forwards, backwards, "the order of asking does not matter");
    let other = Simulation { seed: 8 };
    assert!((0..200).all(|i| one.event(i).1 != other.event(i).1), "another seed gives other events");
    assert!(forwards.windows(2).all(|pair| pair[0].1 != pair[1].1), "events differ");
}

#[test]
fn the_masses_can_be_computed_from_the_low_level_columns() {
    let simulation = Simulation { seed: 2 };
    for i in 0..2000 {
        let (_, features) = simulation.event(i);
        let low: [f32; 21] = std::array::from_fn(|c| features[c]);
        assert_eq!(masses(&low).as_slice(), &features[21..], "event {i}");
    }
}

#[test]
fn columns_are_of_order_one_as_in_the_uci_set() {
    let simulation = Simulation { seed: 4 };
    let n = 20_000;
    let (mut sums, mut squares, mut n_signal) = ([0.0; 28], [0.0; 28], 0);
    for i in 0..n {
        let (label, features) = simulation.event(i);
        n_signal += u32::from(label);
        for (c, value) in features.into_iter().map(f64::from).enumerate() {
            assert!(value.is_finite(), "event {i}: {} is {value}", NAMES[1 + c]);
            sums[c] += value / n as f64;
            squares[c] += value * value / n as f64;
        }
    }
    check_close(f64::from(n_signal) / n as f64, 0.53, 0.015);
    for c in 0..28 {
        let name = NAMES[1 + c];
        if name.ends_with("eta") || name.ends_with("phi") {
            check_close(sums[c], 0.0, 0.03);
            check_close(squares[c], 1.0, 0.03);
        } else {
            check_close(sums[c], 1.0, 0.03);
        }
    }
    for jet in 0..4 {
        let mut values: Vec<f32> = (0..1000).map(|i| simulation.event(i).1[8 + 4 * jet]).collect();
        values.sort_by(f32::total_cmp);
        values.dedup();
        assert_eq!(values.len(), 3, "jet {}: a b-tag takes three values, found {values:?}", jet + 1);
        assert_eq!(values[0], 0.0, "no tag is 0");
    }
}

/// Where signal and background differ most: two b from a Higgs of 125 GeV, and jets with the leptonic W from a top.
#[test]
fn signal_and_background_peak_where_their_particles_are() {
    let simulation = Simulation { seed: 6 };
    let mut bb = [Vec::new(), Vec::new()];
    for i in 0..20_000 {
        let (label, features) = simulation.event(i);
        bb[usize::from(label)].push(features[25]);
    }
    let quartiles = bb.map(|mut values| {
        values.sort_by(f32::total_cmp);
        [values[values.len() / 4], values[values.len() / 2], values[3 * values.len() / 4]]
    });
    let spread = |[low, middle, high]: [f32; 3]| (high - low) / middle;
    assert!(spread(quartiles[1]) < 0.6 * spread(quartiles[0]), "m_bb peaks only in the signal: {quartiles:?}");
}

#[test]
fn a_written_file_reads_back_to_the_same_bits() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("events.csv");
    write_csv(&path, 70_000, 5, 10).expect("the folder can be written to");
    let text = std::fs::read_to_string(&path).expect("the file was written");
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(NAMES.join(",").as_str()), "the header comes first");
    let simulation = Simulation { seed: 5 };
    let mut n_lines = 0;
    for (line, i) in lines.zip(10..) {
        n_lines += 1;
        // The ends of every chunk, and some rows in between: parsing all rows takes longer than simulating them.
        if i % 512 < 12 {
            let (label, features) = simulation.event(i);
            let mut cells = line.split(',');
            assert_eq!(cells.next(), Some(if label == 1 { "1" } else { "0" }), "row {i}: the label comes first");
            let read: Vec<f32> = cells.map(|cell| cell.parse().expect("a number")).collect();
            assert_eq!(read, features, "row {i}");
        }
    }
    assert_eq!(n_lines, 70_000, "one line an event");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder is there").count(), 1, "no temporary file is left");
}

#[test]
fn a_folder_that_is_not_there_is_an_error_that_names_it() {
    let error = write_csv(Path::new("no/such/folder/events.csv"), 10, 1, 0).expect_err("there is no such folder");
    assert!(error.to_string().contains("no/such/folder/events.csv"), "{error}");
}

#[test]
fn a_simulated_file_is_used_again_only_if_it_is_complete() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let file = SimulatedFile::new(folder.path(), 3, 100..350);
    assert!(!file.is_complete(), "there is no file yet");
    file.write().expect("250 rows fit");
    assert!(file.is_complete(), "it was just written");
    let text = std::fs::read_to_string(file.path()).expect("it was just written");

    // Files that another version, another range, an incomplete copy, or a person may leave there.
    let other = SimulatedFile::new(folder.path(), 3, 99..349);
    other.write().expect("250 rows fit");
    let other = std::fs::read_to_string(other.path()).expect("it was just written");
    let without_first = text.replacen(text.lines().nth(1).expect("the first row"), "", 1);
    for bad in [other, without_first, text[..text.len() - 1].to_owned(), text.replacen("label", "signal", 1), String::new()] {
        std::fs::write(file.path(), &bad).expect("it can be replaced");
        assert!(!file.is_complete(), "{}", &bad[..bad.len().min(400)]);
    }
    std::fs::write(file.path(), text).expect("it can be replaced");
    assert!(file.is_complete(), "the bytes are those that were written");
}

#[test]
fn files_of_different_rows_have_different_names() {
    let name = |seed, rows| SimulatedFile::new(Path::new(""), seed, rows).path().to_owned();
    let names = [name(0, 0..100), name(0, 100..120), name(0, 104..124), name(1, 100..120), name(1, 0..100), name(10, 0..100)];
    assert!((1..names.len()).all(|i| !names[..i].contains(&names[i])), "{names:?}");
}

#[test]
fn the_version_is_that_of_these_events() {
    let simulation = Simulation { seed: 0 };
    let sum: f64 = (0..50).flat_map(|i| simulation.event(i).1).map(f64::from).sum();
    assert!(
        VERSION == 1 && (sum - SUM_OF_VERSION_1).abs() < 1e-2,
        "the events changed, now {sum}: raise VERSION, and the number here"
    );
}

/// The sum of all features of the first 50 events with seed 0.
const SUM_OF_VERSION_1: f64 = 852.7233;
