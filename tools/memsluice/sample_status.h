// SPDX-License-Identifier: GPL-2.0
#pragma once

#include "daemon/base/json.h"

namespace memsluice {

// A reply to `status` as docs/api.md has it: a busy tenant, one just made, one with tiering off.
inline Json sample_status() {
  return Json::parse(R"({
    "daemon": {"version": "0.1.0", "uptime_s": 7500, "config_path": "/etc/memsluice/memsluice.toml",
               "config_loaded_unix_s": 1796000000},
    "module": {"loaded": true, "version": "0.1.0", "abi_version": 1,
               "features": ["migrate", "migrate_tenant", "hotness_scan", "tiering"]},
    "nodes": [
      {"id": 0, "tier": 0, "total_bytes": 2147483648, "free_bytes": 536870912, "cpus": 2,
       "read_bandwidth_bytes_per_s": 20000000000, "write_bandwidth_bytes_per_s": 10000000000,
       "distance": [10, 20]},
      {"id": 1, "tier": 1, "total_bytes": 6442450944, "free_bytes": 6227702579, "cpus": 0,
       "read_bandwidth_bytes_per_s": null, "write_bandwidth_bytes_per_s": null,
       "distance": [20, 10]}],
    "tenants": [
      {"cgroup": "/new.slice", "cgroup_id": 4713, "origin": "api",
       "policy": {"tiering": true, "fast_limit_bytes": null, "promote_mib_per_s": 256,
                  "demote_mib_per_s": 256},
       "fast_bytes": 0, "slow_bytes": 0, "memory_current_bytes": 4096, "promoted_pages": 0,
       "demoted_pages": 0, "refused_pages": {}, "histogram_pages": {}, "hot_bin": 15,
       "cold_bin": 16, "scans": 0, "scanned_pages": 0, "scan_cpu_us": 0, "processes": 0},
      {"cgroup": "/system.slice/redis-server.service", "cgroup_id": 4711, "origin": "config",
       "policy": {"tiering": true, "fast_limit_bytes": 268435456, "promote_mib_per_s": 64,
                  "demote_mib_per_s": 128},
       "fast_bytes": 220200960, "slow_bytes": 1288490189, "memory_current_bytes": 1610612736,
       "node_bytes": {"0": 225443840, "1": 1295998976},
       "promoted_pages": 53760, "demoted_pages": 12800,
       "refused_pages": {"pinned": 2, "busy": 10, "shared": 0},
       "histogram_pages": {
         "fast": [0, 3, 12, 200, 900, 4000, 9000, 16000, 12000, 8000, 3000, 400, 60, 9, 1, 0],
         "slow": [250000, 60000, 3200, 900, 300, 100, 40, 20, 9, 4, 1, 0, 0, 0, 0, 0]},
       "hot_bin": 5, "cold_bin": 1, "scans": 12, "scanned_pages": 4417536,
       "scan_cpu_us": 3210000, "processes": 4},
      {"cgroup": "/batch.slice", "cgroup_id": 4712, "origin": "module",
       "policy": {"tiering": false, "fast_limit_bytes": null, "promote_mib_per_s": 0,
                  "demote_mib_per_s": 0},
       "fast_bytes": 1073741824, "slow_bytes": 0, "memory_current_bytes": 1073741824,
       "promoted_pages": 0, "demoted_pages": 0, "refused_pages": {"pinned": 1},
       "histogram_pages": {"fast": [1000, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
                           "slow": [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]},
       "hot_bin": 0, "cold_bin": 16, "scans": 3, "scanned_pages": 3003, "scan_cpu_us": 900,
       "processes": 1}]})");
}

// The same two seconds earlier.
inline Json earlier_sample_status() {
  Json status = sample_status();
  Json& redis = status["tenants"][1];
  redis["promoted_pages"] = 53760 - 2 * 3072;
  redis["demoted_pages"] = 12800 - 2 * 768;
  redis["refused_pages"]["busy"] = 0;
  status["tenants"].erase(0);
  return status;
}

// A reply to `counters` to go with it: node 0 has two channels, node 1 one that was missed, and of
// one nobody knows the node. Two samples each.
inline Json sample_counters() {
  return Json::parse(R"({
    "source": "pmu", "error": null, "notices": [], "period_ms": 1000, "channels": [
      {"name": "socket0/uncore_imc_0", "node": 0, "read_bytes": 9000000000,
       "write_bytes": 1000000000, "enabled_ns": 9000000000, "running_ns": 9000000000,
       "samples": [{"read_bytes_per_s": 4000000000, "write_bytes_per_s": 1000000000},
                   {"read_bytes_per_s": 6000000000, "write_bytes_per_s": 1000000000}]},
      {"name": "socket0/uncore_imc_1", "node": 0, "read_bytes": 0, "write_bytes": 0,
       "enabled_ns": 9000000000, "running_ns": 9000000000,
       "samples": [null, {"read_bytes_per_s": 5000000000, "write_bytes_per_s": 0}]},
      {"name": "socket0/uncore_imc_2", "node": 1, "read_bytes": 0, "write_bytes": 0,
       "enabled_ns": 9000000000, "running_ns": 9000000000, "samples": [null, null]},
      {"name": "socket0/uncore_imc_3", "node": null, "read_bytes": 0, "write_bytes": 0,
       "enabled_ns": 9000000000, "running_ns": 9000000000,
       "samples": [{"read_bytes_per_s": 2048, "write_bytes_per_s": 0}]}]})");
}

inline Json sample_request() {
  return Json::parse(R"({
    "id": 7, "kind": "range", "object": "pid 4711", "target_node": 1, "state": "running",
    "error": null, "total_pages": 131072, "seen_pages": 32768, "moved_pages": 32000,
    "already_there_pages": 700, "refused_pages": {"pinned": 60, "busy": 8, "absent": 0}})");
}

inline Json sample_engines() {
  return Json::parse(R"([
    {"name": "dsa", "rank": 100, "batches": 4711, "bytes": 3221225472, "declined": 12,
     "failed_folios": 3, "late_folios": 1, "differing_folios": 0, "queues": [
       {"name": "wq0.0", "node": 0, "state": "up", "depth": 64, "max_batch": 128,
        "max_transfer_bytes": 2097152, "descriptors": 70000, "batches": 900,
        "bytes": 3221225472, "errors": 3, "late": 0, "quarantined": 0},
       {"name": "wq1.0", "node": null, "state": "stuck", "depth": 64, "max_batch": 128,
        "max_transfer_bytes": 2097152, "descriptors": 12, "batches": 1, "bytes": 8192,
        "errors": 0, "late": 2, "quarantined": 1}]},
    {"name": "cpu", "rank": 0, "batches": 0, "bytes": 0, "declined": 0, "failed_folios": 0,
     "late_folios": 0, "differing_folios": 0, "queues": []}])");
}

// A node with two cgroups, one of them removed, and what is nobody's.
inline Json sample_census() {
  return Json::parse(R"([
    {"node": 0, "cgroup_id": null, "cgroup": null, "tenant_id": null, "tenant": null,
     "pages": {"anon": 0, "shmem": 0, "file": 256, "hugetlb": 0, "kernel": 25600, "pool": 512,
               "free": 65536, "poisoned": 1, "reserved": 5120},
     "held_pages": {"anon": 0, "shmem": 0, "file": 0}},
    {"node": 0, "cgroup_id": 17, "cgroup": "/redis.slice", "tenant_id": 17, "tenant": "/redis.slice",
     "pages": {"anon": 131072, "shmem": 2560, "file": 300, "hugetlb": 0, "kernel": 280, "pool": 0,
               "free": 0, "poisoned": 0, "reserved": 0},
     "held_pages": {"anon": 128, "shmem": 2, "file": 0}},
    {"node": 1, "cgroup_id": 23, "cgroup": null, "tenant_id": null, "tenant": null,
     "pages": {"anon": 0, "shmem": 1024, "file": 0, "hugetlb": 0, "kernel": 0, "pool": 0,
               "free": 0, "poisoned": 0, "reserved": 0},
     "held_pages": {"anon": 0, "shmem": 0, "file": 0}}])");
}

// One that was there, and one that is on its way out.
inline Json sample_channels() {
  return Json::parse(R"([
    {"name": "ch1", "group": null, "node": 1, "state": "online", "start": null,
     "length_bytes": null, "block_bytes": 134217728, "blocks": 2, "online_blocks": 2,
     "movable_blocks": 0, "onlined_by": [], "moved_pages": 0},
    {"name": "ch2", "group": "dram", "node": 2, "state": "removing", "start": 5368709120,
     "length_bytes": 17179869184, "block_bytes": 134217728, "blocks": 128, "online_blocks": 100,
     "movable_blocks": 100, "onlined_by": ["kernel", "module"], "moved_pages": 2560}])");
}

}  // namespace memsluice
