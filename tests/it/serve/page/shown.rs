//! The page in a browser: what it shows is what the service says, and it stays quick and quiet.

use serde_json::{Value, json};

use super::browser::Browser;
use super::{HOSTILE, Service, TOKEN, post, put_cluster, state, token_file};

const SHOWN: &str = "document.documentElement.dataset.version";

fn grouped(n: &Value) -> String {
    let digits = n.to_string();
    let parts: Vec<&str> = digits.as_bytes().rchunks(3).rev().map(|part| std::str::from_utf8(part).unwrap()).collect();
    parts.join(",")
}

#[test]
fn it_shows_100_000_gpus_as_the_json_has_them() {
    let service = Service::start(&["--cluster", "synthetic:100000"]);
    let Some(mut browser) = Browser::open(&service.url) else { return };
    browser.wait_for(SHOWN);
    // What comes later shows as well.
    let jobs: Vec<Value> =
        (0..300).map(|i| json!({"job": format!("j{i}"), "instances": 1, "gpus_per_instance": i % 8 + 1})).collect();
    post(&service, "/v1/place", &json!({"queue": jobs, "policy": "random", "commit": true}));
    post(
        &service,
        "/v1/place",
        &json!({"queue": [{"job": "huge", "instances": 99_999, "gpus_per_instance": 2}], "commit": true}),
    );
    post(&service, "/v1/edits", &json!({"edits": [{"cordon": "n9000"}]}));
    let known = state(&service, "");
    browser.wait_for(&format!("{SHOWN} === {}", known["version"]));
    let (totals, gpus) = (&known["totals"], &known["totals"]["products"][0]);
    let tiles = browser.text("#tiles");
    for shown in [&gpus["allocated"], &gpus["free"], &totals["n_sif"], &totals["partial"], &totals["empty"]] {
        assert!(tiles.contains(&grouped(shown)), "{shown} is not in {tiles}");
    }
    assert_eq!(browser.text("#status"), "live");
    assert!(browser.text("#facts").contains("cpu"));
    // The legend counts the cells of the map, each by itself.
    let legend = browser.eval(
        "[...document.querySelectorAll('#legend li')].map(line => [line.dataset.cell, \
         Number(line.textContent.split(' ')[0].replaceAll(',', ''))])",
    );
    let cells = |name: &str| {
        let found = legend.as_array().unwrap().iter().find(|line| line[0] == name).unwrap();
        found[1].as_u64().unwrap()
    };
    assert_eq!(cells("full") + cells("gang") + cells("single"), gpus["allocated"].as_u64().unwrap());
    assert_eq!(Some(cells("free")), gpus["free"].as_u64());
    assert!(cells("closed") > 0 && Some(cells("closed")) == gpus["unavailable"].as_u64());
    let decisions = browser.text("#decisions");
    assert!(decisions.contains("huge") && decisions.contains("fewer GPUs are free"), "{decisions}");
    assert!(browser.text("#blocked").contains("1 by capacity"));

    let frames = "(async () => {
        const map = document.getElementById('map');
        const times = [];
        const start = performance.now();
        for (let i = 0; i < 40; i++) {
            map.dispatchEvent(new KeyboardEvent('keydown', { key: i % 2 ? 'ArrowLeft' : 'ArrowRight' }));
            await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
            times.push(Number(map.dataset.drawMs));
        }
        return [...times.sort((a, b) => a - b), (performance.now() - start) / times.length];
    })()";
    for zoom in 0..4 {
        let times: Vec<f64> = browser.eval(frames).as_array().unwrap().iter().map(|ms| ms.as_f64().unwrap()).collect();
        println!(
            "100,000 GPUs, zoomed {zoom} times: to draw a frame takes {} ms, at most {}; one came every {:.1} ms",
            times[20], times[39], times[40]
        );
        // A frame of 60 a second.
        assert!(times[20] < 16.7, "{times:?}");
        browser.eval("document.getElementById('zoom-in').click()");
    }
    browser.eval(
        "{ const find = document.getElementById('find'); find.elements.node.value = 'n9000'; find.requestSubmit(); }",
    );
    assert!(browser.text("#tip").starts_with("n9000\nrack r562 · domain d2250 · H100\n"));
    assert_eq!(browser.complaints, Vec::<String>::new());
    // A complaint would have been seen.
    browser.eval("{ setTimeout(() => { throw 1; }); }");
    browser.eval("new Promise((resolve) => setTimeout(resolve, 100))");
    assert_eq!(browser.complaints.len(), 1, "{:?}", browser.complaints);
}

#[test]
fn what_comes_from_outside_is_text() {
    let service = Service::start(&[]);
    let nodes = json!([{"name": HOSTILE, "gpus": 8, "rack": HOSTILE, "model": HOSTILE}]);
    let running = json!([{"job": "a", "gpus_per_instance": 1, "instances": [{"node": HOSTILE}]}]);
    put_cluster(&service, &json!({"nodes": nodes, "running": running}));
    let Some(mut browser) = Browser::open(&service.url) else { return };
    browser.wait_for(SHOWN);
    post(
        &service,
        "/v1/place",
        &json!({"queue": [{"job": HOSTILE, "instances": 1, "gpus_per_instance": 1}], "commit": true}),
    );
    let row = "document.querySelector('#decisions tbody tr')";
    browser.wait_for(row);
    // Both the job and its node.
    assert_eq!(browser.text("#decisions tbody").matches("<img src=x").count(), 2);
    // The one node is in the middle of the map, below the name of its rack.
    browser.eval(
        "{ const map = document.getElementById('map'); const box = map.getBoundingClientRect(); \
         map.dispatchEvent(new PointerEvent('pointermove', \
         { clientX: box.left + box.width / 2 + 5, clientY: box.top + box.height / 2 + 24 })); }",
    );
    assert_eq!(browser.text("#tip").matches("<img src=x").count(), 3);
    let picture = "document.querySelectorAll('img, script:not([src])').length + (window.hacked ?? 0)";
    assert_eq!(browser.eval(picture), json!(0));
    assert_eq!(browser.complaints, Vec::<String>::new());
}

#[test]
fn it_asks_for_the_token_and_keeps_it_to_itself() {
    let (_folder, file) = token_file(TOKEN);
    let service = Service::start(&["--cluster", "synthetic:80", "--token-file", file.to_str().unwrap()]);
    let Some(mut browser) = Browser::open(&service.url) else { return };
    let enter = |token: &str| {
        let form = "const form = document.getElementById('token');";
        format!("{{ {form} form.elements.token.value = {}; form.requestSubmit(); }}", json!(token))
    };
    let asks = "document.getElementById('ask').open";
    browser.wait_for(asks);
    // A wrong one is asked for again.
    browser.eval(&enter("0123456789abcdef-else"));
    browser.wait_for(asks);
    browser.eval(&enter(TOKEN));
    browser.wait_for(SHOWN);
    assert_eq!(browser.eval(asks), json!(false));
    assert!(browser.text("#tiles").contains("80"));
    let kept = "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, location.href])";
    assert!(!browser.eval(kept).as_str().unwrap().contains(TOKEN));
    assert!(!browser.eval("document.documentElement.outerHTML").as_str().unwrap().contains(TOKEN));
}
