//! The batch API.

use serde_json::json;

use super::{Service, snapshot, start};

/// The version in a reply.
fn version(reply: &super::Reply) -> String {
    reply.json()["version"].as_str().unwrap_or_else(|| panic!("{}", reply.text())).to_owned()
}

#[test]
fn a_snapshot_is_put_edited_scored_placed_and_got_again() {
    let service = Service::start(&[]);
    assert_eq!((service.get("/healthz").status, service.get("/readyz").status), (200, 503));
    let none = service.get("/v1/version");
    assert_eq!((none.status, none.json()["error"].as_str()), (409, Some("no-cluster")));
    let put = service.put("/v1/cluster", snapshot(4));
    assert_eq!((put.status, put.json()["gpus"].as_u64()), (200, Some(32)));
    assert_eq!((service.get("/readyz").status, version(&service.get("/v1/version"))), (200, version(&put)));

    let edits = format!(r#"{{"version":"{}","id":"e1","edits":[{}]}}"#, version(&put), start("a", 4, "n1"));
    let edited = service.post("/v1/edits", &edits);
    assert_eq!((edited.status, edited.json()["repeated"].as_bool()), (200, Some(false)));
    // The same id again is answered as the first time, although its version is old by now.
    let again = service.post("/v1/edits", &edits);
    assert_eq!((version(&again), again.json()["repeated"].as_bool()), (version(&edited), Some(true)));
    let stale = service.post("/v1/edits", edits.replace("e1", "e2"));
    assert_eq!((stale.status, stale.json()["error"].as_str()), (409, Some("stale")));
    assert_eq!(version(&stale), version(&edited));

    let candidates = r#"{"queue":[{"job":"b","instances":1,"gpus_per_instance":4}],"candidates":[
        {"job":"b","candidate":"tight","place":[{"node":"n1"}]},
        {"job":"b","candidate":"empty","place":[{"node":"n0","gpus":[0,1,2,3]}]},
        {"job":"b","candidate":"held","place":[{"node":"n1","gpus":[0,1,2,3]}]}]}"#;
    let scored = service.post("/v1/score", candidates).json();
    let rank = |at: usize| scored["rows"][at]["rank"].as_u64();
    assert_eq!((rank(0), rank(1), rank(2)), (Some(1), Some(2), None), "{scored}");
    assert_eq!(scored["rows"][2]["reason"], "gpu-busy");

    let queue = r#""queue":[{"job":"b","instances":2,"gpus_per_instance":8},{"remove":"a"}]"#;
    let seen = service.post("/v1/place", format!("{{{queue}}}")).json();
    assert_eq!(
        (&seen["decisions"][0]["status"], &seen["decisions"][1]["status"]),
        (&json!("placed"), &json!("removed"))
    );
    assert_eq!(version(&service.get("/v1/version")), version(&edited), "nothing has changed");
    let kept = service.post("/v1/place", format!(r#"{{{queue},"commit":true,"id":"p1"}}"#));
    assert_eq!(kept.json()["decisions"], seen["decisions"]);
    let repeated = service.post("/v1/place", format!(r#"{{{queue},"commit":true,"id":"p1"}}"#)).json();
    assert_eq!((&repeated["decisions"], &repeated["repeated"]), (&seen["decisions"], &json!(true)));

    let got = service.get("/v1/cluster");
    assert_eq!(got.header("slotwise-version"), Some(version(&kept).as_str()));
    let running = got.json()["running"].as_array().unwrap().clone();
    assert_eq!((running.len(), &running[0]["job"]), (1, &json!("b")));
    // What was got can be put, also to another service.
    assert_eq!(Service::start(&[]).put("/v1/cluster", &got.body).status, 200);
    assert!(service.end());
}

#[test]
fn edits_are_all_done_or_none_and_names_come_again() {
    let service = Service::with_nodes(2, &[]);
    let before = version(&service.get("/v1/version"));
    for (edits, at, says) in [
        (vec![start("a", 8, "n0"), start("b", 1, "n0")], 1, "0 free devices"),
        (vec![start("a", 8, "n0"), start("a", 1, "n1")], 1, "\"a\""),
        (vec![start("a", 8, "n0"), r#"{"end":"b"}"#.to_owned()], 1, "\"b\""),
        (vec![start("a", 9, "n0")], 0, "8 free devices, expected 9"),
        (vec![start("a", 17, "n0")], 0, "17"),
        (vec![start("a", 1, "n7")], 0, "\"n7\""),
        (vec![r#"{"cordon":"n0"}"#.to_owned(), r#"{"uncordon":"x"}"#.to_owned()], 1, "\"x\""),
        (vec![start("a", 1, "n0"), r#"{"end":"a"}"#.to_owned(), r#"{"end":"a"}"#.to_owned()], 2, "\"a\""),
        (vec![start("", 1, "n0")], 0, "a job without a name"),
        (vec![start("a", 1, "n0"), r#"{"wait":{"job":"","gpus":1}}"#.to_owned()], 1, "a job without a name"),
        (vec![r#"{"wait":{"job":"w","gpus":1,"gang":""}}"#.to_owned()], 0, "a gang without a name"),
        (vec![start("a", 1, "n0").replace("}}", r#","gang":""}}"#)], 0, "a gang without a name"),
        (vec![r#"{"gang":{"gang":"","size":2}}"#.to_owned()], 0, "a gang without a name"),
        (vec![r#"{"wait":{"job":"w","gpus":1,"gang_size":2}}"#.to_owned()], 0, "gang_size 2 and no gang"),
    ] {
        let refused = service.post("/v1/edits", format!(r#"{{"edits":[{}]}}"#, edits.join(",")));
        let message = refused.json()["message"].as_str().unwrap().to_owned();
        assert_eq!(refused.status, 422, "{message}");
        assert!(message.starts_with(&format!("edits[{at}]: ")) && message.contains(says), "{message}");
    }
    assert_eq!(version(&service.get("/v1/version")), before);
    // A name is free again once its job has ended, in the same batch too, and a swap is one step.
    for round in 0..50 {
        let edits = [
            start("a", 8, "n0"),
            start("b", 8, "n1"),
            r#"{"moves":[{"job":"a","instance":0,"node":"n1"},{"job":"b","instance":0,"node":"n0"}]}"#.to_owned(),
            r#"{"end":"a"}"#.to_owned(),
            start("a", 4, "n1"),
            r#"{"end":"a"}"#.to_owned(),
            r#"{"end":"b"}"#.to_owned(),
        ];
        let done = service.post("/v1/edits", format!(r#"{{"edits":[{}]}}"#, edits.join(",")));
        assert_eq!(done.status, 200, "{round}: {}", done.text());
    }
    assert_eq!(service.get("/v1/cluster").json()["running"].as_array().unwrap().len(), 0);
}

#[test]
fn what_is_only_asked_leaves_no_trace() {
    let service = Service::with_nodes(3, &[]);
    let before = service.get("/v1/cluster");
    for round in 0..20 {
        // The same names again and again, of other sizes.
        let gpus = 1 + round % 8;
        let job = format!(r#"{{"job":"b","instances":1,"gpus_per_instance":{gpus},"models":["m{round}"]}}"#);
        let candidate = r#"{"job":"b","candidate":"c","place":[{"node":"n0"}]}"#;
        let scored = service.post("/v1/score", format!(r#"{{"queue":[{job}],"candidates":[{candidate}]}}"#));
        assert_eq!(scored.json()["rows"][0]["reason"], "wrong-model");
        let placed = service
            .post("/v1/place", format!(r#"{{"queue":[{}]}}"#, job.replace(r#","models":["#, r#","models":["x","#)));
        assert_eq!(placed.json()["decisions"][0]["status"], "blocked");
    }
    // A job that is blocked for good does not keep its name either.
    let blocked = r#"{"commit":true,"queue":[{"job":"b","instances":9,"gpus_per_instance":8}]}"#;
    for _ in 0..2 {
        assert_eq!(service.post("/v1/place", blocked).json()["decisions"][0]["status"], "blocked");
    }
    let after = service.get("/v1/cluster");
    assert_eq!((after.header("slotwise-version"), &after.body), (before.header("slotwise-version"), &before.body));
}

#[test]
fn many_callers_at_once_get_their_own_answers() {
    let service = Service::with_nodes(64, &[]);
    let edits: Vec<String> = (0..64).map(|n| start(&format!("r{n}"), 1 + (n % 7) as u8, &format!("n{n}"))).collect();
    assert_eq!(service.post("/v1/edits", format!(r#"{{"edits":[{}]}}"#, edits.join(","))).status, 200);
    std::thread::scope(|scope| {
        for caller in 0..16_usize {
            let service = &service;
            scope.spawn(move || {
                for round in 0..20 {
                    let node = (caller * 5 + round) % 64;
                    let gpus = 1 + (caller + round) % 8;
                    let body = format!(
                        r#"{{"queue":[{{"job":"j","instances":1,"gpus_per_instance":{gpus}}}],"candidates":[{{"job":"j","candidate":"c{caller}","place":[{{"node":"n{node}"}}]}}]}}"#
                    );
                    let reply = service.post("/v1/score", body).json();
                    let fits = gpus <= 8 - (1 + node % 7);
                    assert_eq!(reply["rows"][0]["candidate"], json!(format!("c{caller}")));
                    assert_eq!(reply["rows"][0]["feasible"], json!(fits), "{node} {gpus}: {reply}");
                }
            });
        }
    });
}

#[test]
fn a_restart_is_a_new_epoch_and_says_that_it_knows_nothing() {
    let service = Service::with_nodes(1, &[]);
    let old = version(&service.get("/v1/version"));
    service.kill();
    let service = Service::start(&[]);
    let edits = format!(r#"{{"version":"{old}","edits":[]}}"#);
    assert_eq!(service.post("/v1/edits", &edits).json()["error"], "no-cluster");
    assert_eq!(service.put("/v1/cluster", snapshot(1)).status, 200);
    // The generation may be the same, the epoch is not.
    assert_eq!(service.post("/v1/edits", &edits).json()["error"], "stale");
}

#[test]
fn the_groups_of_a_job_come_and_go_together() {
    let service = Service::with_nodes(2, &[]);
    let job = r#"{"job":"t","groups":[{"instances":1,"gpus_per_instance":8},{"instances":1,"gpus_per_instance":8}]}"#;
    let place = format!(r#"{{"commit":true,"queue":[{job}]}}"#);
    for _ in 0..3 {
        assert_eq!(service.post("/v1/place", &place).json()["decisions"][0]["status"], "placed");
        let alone = service.post("/v1/edits", r#"{"edits":[{"end":"t/1"}]}"#);
        assert!(alone.status == 422 && alone.text().contains("a group of the job"), "{}", alone.text());
        // All or none: what ended before is back, under its name.
        let undone = service.post("/v1/edits", r#"{"edits":[{"end":"t"},{"end":"nobody"}]}"#);
        assert_eq!(undone.status, 422);
        assert_eq!(service.post("/v1/place", &place).status, 400, "it runs still");
        assert_eq!(service.post("/v1/edits", r#"{"edits":[{"end":"t"}]}"#).status, 200);
    }
    let candidate = r#"{"job":"t","candidate":"c","place":[]}"#;
    let scored = service.post("/v1/score", format!(r#"{{"queue":[{job}],"candidates":[{candidate}]}}"#));
    assert!(scored.status == 400 && scored.text().contains("several groups"), "{}", scored.text());
    // Groups of the same GPUs are planned as one, others are not.
    assert_eq!(service.post("/v1/plan", format!(r#"{{"job":{job}}}"#)).json()["moves"], 0);
    let unlike = job.replacen("\"gpus_per_instance\":8", "\"gpus_per_instance\":4", 1);
    let refused = service.post("/v1/explain", format!(r#"{{"job":{unlike}}}"#));
    assert!(refused.status == 400 && refused.text().contains("unlike GPUs"), "{}", refused.text());
    let audit = service.post("/v1/audit", format!(r#"{{"queue":[{job}]}}"#));
    assert_eq!(audit.status, 200, "{}", audit.text());
}

/// What was edited can be got and put again, so nothing may be said that a snapshot cannot say.
#[test]
fn what_a_snapshot_cannot_say_is_no_edit() {
    let service = Service::with_nodes(1, &[]);
    for start in [
        r#"{"job":"","gpus_per_instance":1,"instances":[{"node":"n0"}]}"#,
        r#"{"job":"a","gpus_per_instance":1,"models":[""],"instances":[{"node":"n0"}]}"#,
        r#"{"job":"a","gpus_per_instance":1,"remaining_s":9007199254740992,"instances":[{"node":"n0"}]}"#,
        r#"{"job":"a","gpus_per_instance":1,"move_cost_s":18446744073709551615,"instances":[{"node":"n0"}]}"#,
        r#"{"job":"a","gpus_per_instance":1,"instances":[]}"#,
    ] {
        let refused = service.post("/v1/edits", format!(r#"{{"edits":[{{"start":{start}}}]}}"#));
        assert_eq!(refused.status, 422, "{start}: {}", refused.text());
    }
    let most = r#"{"job":"a","gpus_per_instance":1,"remaining_s":9007199254740991,"instances":[{"node":"n0"}]}"#;
    assert_eq!(service.post("/v1/edits", format!(r#"{{"edits":[{{"start":{most}}}]}}"#)).status, 200);
    let got = service.get("/v1/cluster").body;
    assert_eq!(service.put("/v1/cluster", got).status, 200);
}

#[test]
fn an_id_is_for_one_kind_of_change_and_a_call_is_bounded() {
    let service = Service::with_nodes(1, &[]);
    assert_eq!(service.post("/v1/edits", r#"{"id":"x","edits":[]}"#).status, 200);
    let place = r#"{"id":"x","commit":true,"queue":[{"job":"j","instances":1,"gpus_per_instance":1}]}"#;
    assert_eq!(service.post("/v1/place", place).status, 400);
    assert_eq!(service.post("/v1/place", place.replace("\"x\"", "\"y\"")).status, 200);
    assert_eq!(service.post("/v1/edits", r#"{"id":"y","edits":[]}"#).status, 400);
    let large = r#"{"queue":[{"job":"x","instances":16777216,"gpus_per_instance":0}]}"#;
    let refused = service.post("/v1/place", large);
    assert!(refused.status == 400 && refused.text().contains("instances without GPUs"), "{}", refused.text());
}
