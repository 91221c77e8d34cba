// losses[r] = w (1 - e) v[t] (-log p[t]) + w e / n_classes sum_c v[c] (-log p[c]), -log p[c] = m - x[c] + log sum_k exp(x[k] - m), and
// rows[r] = (m, log sum_k exp(x[k] - m), (1 - e) v[t] + e / n_classes sum v, w v[t]).
// Twin: cross_entropy_cpu.rs. Moves 4 bytes an element and 32 a row.
// Ladder: row_an_invocation (no barrier, for narrow rows and software adapters) -> row_a_group (coalesced).

override CLASS_WEIGHTS: u32 = 0u;
// (sum of v[c] (m - x[c]), sum of v[c]), which are only needed for smoothing.
fn scan_all_classes(row: u32, m: f32, first: u32, stride: u32) -> vec2f {
    var sums = vec2f();
    for (var col = first; col < params.n_cols; col += stride) {
        sums += class_weight(col) * vec2f(m - x[row * params.n_cols + col], 1.0);
    }
    return sums;
}

fn store(row: u32, m: f32, sum: f32, all_classes: vec2f) {
    let log_sum = log(sum);
    let col = targets[row];
    if params.ignores == 1u && col == params.ignored {
        rows[row] = vec4f(m, log_sum, 0.0, 0.0);
        losses[row] = 0.0;
        return;
    }
    if col >= params.n_cols {
        // Not a constant expression, which WGSL rejects.
        let nan = bitcast<f32>(params.nan_bits);
        rows[row] = vec4f(m, log_sum, nan, weights[row]);
        losses[row] = nan;
        return;
    }
    let v = (1.0 - params.smoothing) * class_weight(col);
    var loss = v * (m - x[row * params.n_cols + col] + log_sum);
    var total = v;
    if params.smoothing > 0.0 {
        let share = params.smoothing / f32(params.n_cols);
        loss += share * (all_classes.x + all_classes.y * log_sum);
        total += share * all_classes.y;
    }
    rows[row] = vec4f(m, log_sum, total, weights[row] * class_weight(col));
    losses[row] = weights[row] * loss;
}

@compute @workgroup_size(WG)
fn row_an_invocation(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = (group.y * groups.x + group.x) * WG + invocation;
    if row >= params.n_rows {
        return;
    }
    let sums = scan(row, 0u, 1u);
    var all_classes = vec2f();
    if params.smoothing > 0.0 {
        all_classes = scan_all_classes(row, sums.x, 0u, 1u);
    }
    store(row, sums.x, sums.y, all_classes);
}

@compute @workgroup_size(WG)
fn row_a_group(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) invocation: u32) {
    let row = group.y * groups.x + group.x;
    if row >= params.n_rows {
        return;
    }
    let sums = join_group(scan(row, invocation, WG), invocation);
    workgroupBarrier();
    partials[invocation] = vec2f();
    if params.smoothing > 0.0 {
        partials[invocation] = scan_all_classes(row, sums.x, invocation, WG);
        workgroupBarrier();
        for (var reach = WG / 2u; reach > 0u; reach /= 2u) {
            if invocation < reach {
                partials[invocation] += partials[invocation + reach];
            }
            workgroupBarrier();
        }
    }
    if invocation == 0u {
        store(row, sums.x, sums.y, partials[0]);
    }
}
