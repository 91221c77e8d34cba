// Part: what four result pixels read, tap by tap, for forms without barriers. Expects the part walk.wgsl.

// What four result pixels read: the images they are of, and the source pixels of their first taps.
struct Sources {
    image: vec4u,
    y: vec4i,
    x: vec4i,
}

fn sources_of(walk: Walk, rows: vec4u) -> Sources {
    var sources: Sources;
    for (var i = 0u; i < 4u; i += 1u) {
        let place = place_of(walk, rows[i]);
        let first = walk.start + walk.pixel_step * vec2i(place.yz);
        sources.image[i] = place.x;
        sources.y[i] = first.x;
        sources.x[i] = first.y;
    }
    return sources;
}

struct Taps {
    at: vec4u,
    inside: vec4<bool>,
}
