//! The outcome of the two processes, before the detector.

use super::decay::{Resonance, two_body};
use super::four_vector::FourVector;
use super::random::Random;

// Masses and widths as measured, GeV; the two heavy Higgs bosons are hypothetical, so their widths are a choice.
const W: Resonance = Resonance { mass: 80.4, width: 2.1 };
const TOP: Resonance = Resonance { mass: 172.5, width: 1.4 };
const HEAVY_HIGGS: Resonance = Resonance { mass: 425.0, width: 10.0 };
const CHARGED_HIGGS: Resonance = Resonance { mass: 325.0, width: 8.0 };
const LIGHT_HIGGS: Resonance = Resonance { mass: 125.0, width: 0.004 };
const BOTTOM_MASS: f64 = 4.7;

/// Energy of the two protons together, GeV.
const COLLIDER_ENERGY: f64 = 8000.0;
/// How fast the mass distribution of a top pair falls off above its threshold, GeV.
const TOP_PAIR_SCALE: f64 = 90.0;
/// The spread of the rapidity, as a fraction of the largest that the energy allows, `ln(√s / m)`.
const RAPIDITY_SPREAD: f64 = 0.36;
/// The probability, e^-1.6, that the incoming gluons radiate no hard jet; they radiate 1.6 on average.
const NONE_RADIATED: f64 = 0.201_896_517_994_655_4;
/// The minimum transverse momentum of such a jet, GeV; their spectrum falls as `pT^-(1 + RADIATED_POWER)`.
const RADIATED_MIN_PT: f64 = 20.0;
const RADIATED_POWER: f64 = 1.4;
const RADIATED_MAX_PT: f64 = 400.0;
const RADIATED_MAX_ETA: f64 = 3.5;

/// The process of a collision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Process {
    /// `g g → H⁰ → W H±`, `H± → W h⁰`, `h⁰ → b b̄`: the signal.
    Higgs,
    /// `g g → t t̄`, `t → W b`: the background.
    TopPair,
}

/// The flavours that a b-tagger can distinguish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Flavour {
    #[default]
    Light,
    Charm,
    Bottom,
}

/// The maximum number of quarks and gluons of a collision: four from the decay, and the radiated ones.
pub(crate) const MAX_PARTONS: usize = 8;

/// Quarks and gluons, of which only the kind has been drawn: two b, two from a W, and then those that the incoming gluons
/// radiated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Partons {
    pub(crate) flavours: [Flavour; MAX_PARTONS],
    pub(crate) n: usize,
}

impl Partons {
    /// The number of radiated ones is Poisson distributed, limited to four: one less than the number of uniform numbers whose product is below e^-mean
    /// (Knuth).
    pub(crate) fn draw(random: &mut Random) -> Self {
        let mut flavours = [Flavour::Light; MAX_PARTONS];
        flavours[..2].fill(Flavour::Bottom);
        // W → c s̄ is as frequent as W → u d̄.
        if random.uniform() < 0.5 {
            flavours[2] = Flavour::Charm;
        }
        let mut n = 4;
        let mut product = random.uniform();
        while product > NONE_RADIATED && n < MAX_PARTONS {
            n += 1;
            product *= random.uniform();
        }
        Self { flavours, n }
    }
}

/// A collision's outcome, in the laboratory frame; the momenta are those of [`Partons`], in the same order.
#[derive(Clone, Debug)]
pub(crate) struct Collision {
    pub(crate) lepton: FourVector,
    pub(crate) neutrino: FourVector,
    pub(crate) partons: [FourVector; MAX_PARTONS],
}

impl Process {
    /// 1 for the signal.
    pub(crate) fn label(self) -> u8 {
        match self {
            Self::Higgs => 1,
            Self::TopPair => 0,
        }
    }

    /// Draws a production and all decays, with `n_partons` partons in the final state. `None` if a drawn mass is too small for its decay products.
    pub(crate) fn collide(self, n_partons: usize, random: &mut Random) -> Option<Collision> {
        let mut partons = [FourVector::default(); MAX_PARTONS];
        let recoil = radiate(&mut partons[4..n_partons], random);
        let w_masses = [W.draw_mass(random), W.draw_mass(random)];
        let (w, bottoms) = match self {
            Self::Higgs => higgs_chain(w_masses, recoil, random)?,
            Self::TopPair => top_pair(w_masses, recoil, random)?,
        };
        // Each W is equally likely to be the one that decays into the lepton.
        let leptonic = usize::from(random.uniform() < 0.5);
        let hadronic = 1 - leptonic;
        let [lepton, neutrino] = two_body(&w[leptonic], w_masses[leptonic], 0.0, 0.0, random)?;
        let quarks = two_body(&w[hadronic], w_masses[hadronic], 0.0, 0.0, random)?;
        partons[..2].copy_from_slice(&bottoms);
        partons[2..4].copy_from_slice(&quarks);
        Some(Collision { lepton, neutrino, partons })
    }
}

/// The two W and the two b.
type Products = ([FourVector; 2], [FourVector; 2]);

fn higgs_chain(w_masses: [f64; 2], recoil: [f64; 2], random: &mut Random) -> Option<Products> {
    let heavy_mass = HEAVY_HIGGS.draw_mass(random);
    let charged_mass = CHARGED_HIGGS.draw_mass(random);
    let light_mass = LIGHT_HIGGS.draw_mass(random);
    let heavy = produced(heavy_mass, recoil, random);
    let [w_1, charged] = two_body(&heavy, heavy_mass, w_masses[0], charged_mass, random)?;
    let [w_2, light] = two_body(&charged, charged_mass, w_masses[1], light_mass, random)?;
    let bottoms = two_body(&light, light_mass, BOTTOM_MASS, BOTTOM_MASS, random)?;
    Some(([w_1, w_2], bottoms))
}

/// The pair's mass above threshold follows `√x exp(-x / TOP_PAIR_SCALE)`: growing phase space times falling gluon densities.
fn top_pair(w_masses: [f64; 2], recoil: [f64; 2], random: &mut Random) -> Option<Products> {
    let masses = [TOP.draw_mass(random), TOP.draw_mass(random)];
    let n = random.normal();
    let above = TOP_PAIR_SCALE * (0.5 * n * n + random.exponential());
    let pair_mass = masses[0] + masses[1] + above;
    let pair = produced(pair_mass, recoil, random);
    let tops = two_body(&pair, pair_mass, masses[0], masses[1], random)?;
    let [w_1, b_1] = two_body(&tops[0], masses[0], w_masses[0], BOTTOM_MASS, random)?;
    let [w_2, b_2] = two_body(&tops[1], masses[1], w_masses[1], BOTTOM_MASS, random)?;
    Some(([w_1, w_2], [b_1, b_2]))
}

/// A system of `mass` with the given transverse momentum and a drawn rapidity: `E = mT cosh y`, `pz = mT sinh y`, `mT² = m² +
/// pT²`.
fn produced(mass: f64, [px, py]: [f64; 2], random: &mut Random) -> FourVector {
    let n = random.normal();
    let up = (RAPIDITY_SPREAD * (COLLIDER_ENERGY / mass).ln() * n).exp();
    let mt = (mass * mass + px * px + py * py).sqrt();
    FourVector { e: mt * 0.5 * (up + 1.0 / up), px, py, pz: mt * 0.5 * (up - 1.0 / up) }
}

/// Fills `jets` with initial-state radiation; returns the transverse momentum with which the rest recoils.
fn radiate(jets: &mut [FourVector], random: &mut Random) -> [f64; 2] {
    let mut recoil = [0.0; 2];
    for jet in jets {
        let pt = radiated_pt(random);
        let [cos, sin] = random.on_circle();
        let up = random.uniform_in(-RADIATED_MAX_ETA, RADIATED_MAX_ETA).exp();
        *jet = FourVector::with_mass(0.0, [pt * cos, pt * sin, pt * 0.5 * (up - 1.0 / up)]);
        recoil = [recoil[0] - jet.px, recoil[1] - jet.py];
    }
    recoil
}

fn radiated_pt(random: &mut Random) -> f64 {
    loop {
        let pt = RADIATED_MIN_PT * (1.0 - random.uniform()).powf(-1.0 / RADIATED_POWER);
        if pt < RADIATED_MAX_PT {
            return pt;
        }
    }
}
