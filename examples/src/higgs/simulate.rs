//! Rows with the columns of the HIGGS set of UCI, for runs without the real file.
//!
//! The set compares, in proton collisions, a hypothetical signal with a background that looks similar (Baldi, Sadowski, Whiteson
//! 2014, arXiv:1402.4735):
//!
//! ```text
//! signal      g g → H⁰ → W H±,  H± → W h⁰,  h⁰ → b b̄      m(H⁰) = 425, m(H±) = 325, m(h⁰) = 125 GeV
//! background  g g → t t̄,  t → W b
//! ```
//!
//! Simulated are the decays, with exact kinematics in random directions, b-tags, and a crude detector, which measures energies
//! with errors, misses some jets, and has a limited range of momenta and angles. Not simulated are matrix elements, spins,
//! widths, parton showers, hadronisation, pile-up and merged jets.
//!
//! As in the real set, columns have means of about 1, and the seven masses help a network. Its scores on these rows say nothing
//! about its scores on real ones.

mod file;
mod random;
#[cfg(test)]
mod tests;

pub(crate) use file::simulated;

use std::f64::consts::PI;

use random::Random;

/// The label and the 28 columns, with the names and in the order of the real set.
const HEADER: &str = "label,lepton_pT,lepton_eta,lepton_phi,missing_energy_magnitude,missing_energy_phi,\
    jet_1_pt,jet_1_eta,jet_1_phi,jet_1_b-tag,jet_2_pt,jet_2_eta,jet_2_phi,jet_2_b-tag,\
    jet_3_pt,jet_3_eta,jet_3_phi,jet_3_b-tag,jet_4_pt,jet_4_eta,jet_4_phi,jet_4_b-tag,\
    m_jj,m_jjj,m_lv,m_jlv,m_bb,m_wbb,m_wwbb";

/// The divisors of the columns: means of momenta, tags and masses; standard deviations of angles.
#[rustfmt::skip]
const UNITS: [f64; 28] = [
    54.4, 1.0, PHI, 51.94, PHI,
    103.3, 0.9064, PHI, 0.8302,
    67.98, 0.9599, PHI, 0.648,
    46.42, 1.024, PHI, 0.5743,
    29.99, 1.093, PHI, 0.4089,
    85.78, 180.0, 62.17, 172.7, 136.1, 291.5, 441.3,
];
const PHI: f64 = 1.814;

// In GeV, with c = 1.
const W_MASS: f64 = 80.4;
const TOP_MASS: f64 = 172.5;
const BOTTOM_MASS: f64 = 4.7;

/// Energy and momentum; the beam is along the last axis.
type FourVector = [f64; 4];

/// The label and the features of event `i`, which depend on nothing but `seed` and `i`.
fn event(seed: u64, i: u64) -> (bool, [f32; 28]) {
    let mut random = Random::for_event(seed, i);
    let is_signal = random.uniform() < 0.53;
    loop {
        if let Some(mut columns) = detected(products(is_signal, &mut random), &mut random) {
            let masses = masses(&columns);
            columns[21..].copy_from_slice(&masses);
            return (is_signal, std::array::from_fn(|c| (columns[c] / UNITS[c]) as f32));
        }
    }
}

/// The lepton, its neutrino, two b quarks, and the two quarks from the other W.
fn products(is_signal: bool, random: &mut Random) -> [FourVector; 6] {
    // Heavier pairs of tops are rarer.
    let mass = if is_signal { 425.0 } else { 2.0 * TOP_MASS + 90.0 * random.exponential() };
    let momentum = [30.0 * random.normal(), 30.0 * random.normal(), 0.9 * mass * random.normal()];
    let all = with_mass(mass, momentum);
    let (mut ws, [b_1, b_2]) = if is_signal {
        let [w_1, charged] = decay(all, [W_MASS, 325.0], random);
        let [w_2, light] = decay(charged, [W_MASS, 125.0], random);
        ([w_1, w_2], decay(light, [BOTTOM_MASS; 2], random))
    } else {
        let [[w_1, b_1], [w_2, b_2]] = decay(all, [TOP_MASS; 2], random).map(|top| decay(top, [W_MASS, BOTTOM_MASS], random));
        ([w_1, w_2], [b_1, b_2])
    };
    if random.uniform() < 0.5 {
        ws.swap(0, 1);
    }
    let [[lepton, neutrino], [quark_1, quark_2]] = ws.map(|w| decay(w, [0.0; 2], random));
    [lepton, neutrino, b_1, b_2, quark_1, quark_2]
}

/// The columns, in GeV and radians, except the last seven; `None` if the detector does not see the lepton and four jets.
fn detected([lepton, neutrino, quarks @ ..]: [FourVector; 6], random: &mut Random) -> Option<[f64; 28]> {
    let mut jets: [[f64; 4]; 4] = std::array::from_fn(|n| {
        // Instead of a jet that is missed, one that has nothing to do with the decays is among the four.
        let is_missed = random.uniform() < 0.2;
        let [pt, eta, phi] = if is_missed {
            [20.0 + 40.0 * random.exponential(), random.normal(), PI * (2.0 * random.uniform() - 1.0)]
        } else {
            coordinates(quarks[n])
        };
        // The chances that the tagger finds signs of a b quark, and that it is certain.
        let chances = if n < 2 && !is_missed { [0.75, 0.6] } else { [0.1, 0.03] };
        let sign = random.uniform();
        let tag = chances.iter().filter(|chance| sign < **chance).count();
        [pt * (0.12 * random.normal()).exp(), eta, phi, tag as f64]
    });
    jets.sort_unstable_by(|a, b| b[0].total_cmp(&a[0]));
    let [x, y] = [neutrino[1] + 15.0 * random.normal(), neutrino[2] + 15.0 * random.normal()];
    let mut columns = [0.0; 28];
    columns[..3].copy_from_slice(&coordinates(lepton));
    columns[3..5].copy_from_slice(&[x.hypot(y), y.atan2(x)]);
    columns[5..21].copy_from_slice(jets.as_flattened());
    [0, 5, 9, 13, 17].iter().all(|&at| columns[at] > 15.0 && columns[at + 1].abs() < 2.5).then_some(columns)
}

/// The last seven columns, which are functions of the others: masses of particles that the measured ones could have come from.
///
/// The two jets with the highest tags count as b quarks, the others as the products of a W (`jj`), and the lepton and the missing
/// momentum as those of the other W (`lv`), where the neutrino has the pseudorapidity of the lepton.
fn masses(columns: &[f64; 28]) -> [f64; 7] {
    let mut jets: [&[f64]; 4] = std::array::from_fn(|n| &columns[5 + 4 * n..9 + 4 * n]);
    jets.sort_by(|a, b| b[3].total_cmp(&a[3]));
    let [b_1, b_2, j_1, j_2] = jets.map(|jet| massless(jet[0], jet[1], jet[2]));
    let lepton = massless(columns[0], columns[1], columns[2]);
    let lv = sum(lepton, massless(columns[3], columns[1], columns[4]));
    let (jj, bb) = (sum(j_1, j_2), sum(b_1, b_2));
    // Of the two ways to pair each W with a b, the one that is nearer to two tops.
    let tops = [(b_1, b_2), (b_2, b_1)].map(|(near, far)| [mass(sum(jj, near)), mass(sum(lv, far))]);
    let off = |[a, b]: [f64; 2]| (a - TOP_MASS).abs() + (b - TOP_MASS).abs();
    let [m_jjj, m_jlv] = if off(tops[0]) <= off(tops[1]) { tops[0] } else { tops[1] };
    [mass(jj), m_jjj, mass(lv), m_jlv, mass(bb), mass(sum(jj, bb)), mass(sum(sum(jj, lv), bb))]
}

/// Decays a particle into two with masses that are together smaller than its own: back to back in its rest frame, in a random
/// direction.
fn decay(parent: FourVector, [a, b]: [f64; 2], random: &mut Random) -> [FourVector; 2] {
    let m = mass(parent);
    let momentum = ((m * m - (a + b).powi(2)) * (m * m - (a - b).powi(2))).sqrt() / (2.0 * m);
    let at_rest = with_mass(a, random.direction().map(|x| x * momentum));
    // The Lorentz boost of the first to the frame of the parent.
    let e = (0..4).map(|axis| at_rest[axis] * parent[axis]).sum::<f64>() / m;
    let along = (at_rest[0] + e) / (parent[0] + m);
    let mut first: FourVector = std::array::from_fn(|axis| at_rest[axis] + parent[axis] * along);
    first[0] = e;
    [first, std::array::from_fn(|axis| parent[axis] - first[axis])]
}

fn sum(a: FourVector, b: FourVector) -> FourVector {
    std::array::from_fn(|axis| a[axis] + b[axis])
}

fn mass([e, px, py, pz]: FourVector) -> f64 {
    (e * e - px * px - py * py - pz * pz).max(0.0).sqrt()
}

fn with_mass(mass: f64, [px, py, pz]: [f64; 3]) -> FourVector {
    [(mass * mass + px * px + py * py + pz * pz).sqrt(), px, py, pz]
}

fn massless(pt: f64, eta: f64, phi: f64) -> FourVector {
    let (sin, cos) = phi.sin_cos();
    with_mass(0.0, [pt * cos, pt * sin, pt * eta.sinh()])
}

/// Transverse momentum, pseudorapidity and azimuth.
fn coordinates([_, px, py, pz]: FourVector) -> [f64; 3] {
    let pt = (px * px + py * py).sqrt();
    [pt, (pz / pt).asinh(), py.atan2(px)]
}
