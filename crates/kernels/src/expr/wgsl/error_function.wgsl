// erf(v): twin `erf` in vector.rs. erf(4) is 1 in f32.
fn error_function(v: V) -> V {
    let t = min(abs(v), V(4.0));
    let s = t * t;
    let q = (V(-1.72853470e-5) * t + 3.83197126e-4) * s + (V(-3.88396438e-3) * t + 2.42546219e-2);
    let p = (((q * t - 0.106777877) * t - 0.634846687) * t - 0.128717512) * t - t;
    let n = ((((V(-5.96761703e-4) * s + 4.99119423e-3) * s - 2.67681349e-2) * s + 0.112819925) * s - 0.376125336) * s + 0.128379166;
    let y = select(n * t + t, 1.0 - exponential(p), t > V(0.927734375));
    return select(select(y, -y, v < V(0.0)), v, (v == V(0.0)) | is_nan(v));
}
