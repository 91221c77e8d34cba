//! Energy and momentum as one vector.

use std::ops::{Add, Sub};

/// `(E, p)` in GeV; the beam is along z. Invariant mass: `m² = E² - |p|²`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct FourVector {
    pub(crate) e: f64,
    pub(crate) px: f64,
    pub(crate) py: f64,
    pub(crate) pz: f64,
}

impl FourVector {
    /// A particle of `mass` with that momentum: `E = √(m² + |p|²)`.
    pub(crate) fn with_mass(mass: f64, [px, py, pz]: [f64; 3]) -> Self {
        Self { e: (mass * mass + px * px + py * py + pz * pz).sqrt(), px, py, pz }
    }

    /// A massless particle from detector coordinates: `p = pT (cos φ, sin φ, sinh η)`, `E = pT cosh η`.
    pub(crate) fn massless(pt: f64, eta: f64, phi: f64) -> Self {
        let (sin, cos) = phi.sin_cos();
        let up = eta.exp();
        let down = 1.0 / up;
        Self { e: pt * 0.5 * (up + down), px: pt * cos, py: pt * sin, pz: pt * 0.5 * (up - down) }
    }

    /// `√(E² - |p|²)`; 0 if rounding makes the square negative.
    pub(crate) fn mass(&self) -> f64 {
        (self.e * self.e - self.momentum_squared()).max(0.0).sqrt()
    }

    /// Transverse momentum: `pT = √(px² + py²)`.
    pub(crate) fn pt(&self) -> f64 {
        self.pt_squared().sqrt()
    }

    /// Pseudorapidity: `η = asinh(pz / pT)`, 0 perpendicular to the beam, ±∞ along it.
    pub(crate) fn eta(&self) -> f64 {
        let t = self.pz / self.pt();
        (t.abs() + (t * t + 1.0).sqrt()).ln().copysign(t)
    }

    /// Azimuth around the beam, in (-π, π].
    pub(crate) fn phi(&self) -> f64 {
        self.py.atan2(self.px)
    }

    /// Whether `|η| < limit`, given `sinh limit`, which avoids the logarithm.
    pub(crate) fn is_central(&self, sinh_limit: f64) -> bool {
        self.pz.abs() < self.pt() * sinh_limit
    }

    /// The same direction with energy and momentum multiplied by `factor`.
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { e: self.e * factor, px: self.px * factor, py: self.py * factor, pz: self.pz * factor }
    }

    /// Boosts `self`, given in the rest frame of `parent` (of invariant mass `mass`), to the frame in which `parent` has its momentum:
    /// `E' = (E Eₚ + p·pₚ) / M`, `p' = p + pₚ (E + E') / (Eₚ + M)`.
    pub(crate) fn boosted_from_rest_of(self, parent: &Self, mass: f64) -> Self {
        let dot = self.px * parent.px + self.py * parent.py + self.pz * parent.pz;
        let e = (self.e * parent.e + dot) / mass;
        let along = (self.e + e) / (parent.e + mass);
        Self { e, px: self.px + parent.px * along, py: self.py + parent.py * along, pz: self.pz + parent.pz * along }
    }

    fn pt_squared(&self) -> f64 {
        self.px * self.px + self.py * self.py
    }

    fn momentum_squared(&self) -> f64 {
        self.pt_squared() + self.pz * self.pz
    }
}

/// The distance of two directions in the detector: `ΔR² = Δη² + Δφ²`, up to terms of fourth order.
///
/// Computed without logarithms or inverse trigonometric functions as `2 (cosh Δη - cos Δφ) = 2 (|a||b| - a·b) / (pT_a pT_b)`.
pub(crate) fn delta_r_squared(a: &FourVector, b: &FourVector) -> f64 {
    let dot = a.px * b.px + a.py * b.py + a.pz * b.pz;
    2.0 * ((a.momentum_squared() * b.momentum_squared()).sqrt() - dot) / (a.pt_squared() * b.pt_squared()).sqrt()
}

impl Add for FourVector {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { e: self.e + other.e, px: self.px + other.px, py: self.py + other.py, pz: self.pz + other.pz }
    }
}

impl Sub for FourVector {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { e: self.e - other.e, px: self.px - other.px, py: self.py - other.py, pz: self.pz - other.pz }
    }
}
