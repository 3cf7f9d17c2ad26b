// SPDX-License-Identifier: GPL-2.0
#include "daemon/lending/nic/emulated/request_layout.h"

#include <algorithm>

namespace memsluice::nic {
namespace {

bool is_remote(Opcode opcode) {
  return opcode == Opcode::kWrite || opcode == Opcode::kRead || opcode == Opcode::kCompareSwap ||
         opcode == Opcode::kFetchAdd;
}

bool has_field(Opcode opcode, Field field) {
  const bool atomic = opcode == Opcode::kCompareSwap || opcode == Opcode::kFetchAdd;
  const bool bind = opcode == Opcode::kBind;
  const bool enable = opcode == Opcode::kSendEnable || opcode == Opcode::kReceiveEnable;
  switch (field) {
    case Field::kOpcode:
      return true;
    case Field::kKey:
      return is_remote(opcode) || bind || opcode == Opcode::kLocalInvalidate ||
             opcode == Opcode::kSendWithInvalidate;
    case Field::kTarget:
      return bind || enable;
    case Field::kIndex:
      return enable || opcode == Opcode::kWait;
    case Field::kRemoteAddress:
      return is_remote(opcode);
    case Field::kOperand:
      return atomic;
    case Field::kSwap:
      return opcode == Opcode::kCompareSwap;
    case Field::kNewTag:
    case Field::kWindowAddress:
    case Field::kRegionAddress:
    case Field::kLength:
      return bind;
  }
  return false;
}

FieldPlace place_of(Field field) {
  switch (field) {
    case Field::kOpcode:
      return {offsetof(RequestBlock, opcode), 1};
    case Field::kKey:
      return {offsetof(RequestBlock, key), 4};
    case Field::kNewTag:
      return {offsetof(RequestBlock, new_tag), 1};
    case Field::kTarget:
      return {offsetof(RequestBlock, queue), 3};
    case Field::kIndex:
      return {offsetof(RequestBlock, enabled), 4};
    case Field::kRemoteAddress:
    case Field::kWindowAddress:
      return {offsetof(RequestBlock, remote_address), 8};
    case Field::kOperand:
    case Field::kLength:
      return {offsetof(RequestBlock, operand), 8};
    case Field::kSwap:
    case Field::kRegionAddress:
      return {offsetof(RequestBlock, swap), 8};
  }
  return {};
}

}  // namespace

bool is_opcode(Opcode opcode) {
  return std::ranges::find(kOpcodes, opcode) != kOpcodes.end();
}

RequestBlock encode(const WorkRequest& request) {
  RequestBlock block;
  block.opcode = request.opcode;
  block.flags = static_cast<uint8_t>((request.signaled ? kFlagSignaled : 0) |
                                     (request.fence ? kFlagFence : 0) |
                                     (request.any_queue_pair ? kFlagAnyQueuePair : 0));
  const auto entries = static_cast<uint32_t>(request.entries.size());
  block.blocks = static_cast<uint8_t>(blocks_for(request.opcode, entries));
  block.entries = static_cast<uint8_t>(entries);
  block.rights = request.rights;
  block.new_tag = request.new_tag;
  block.key = is_remote(request.opcode) ? request.remote_key : request.key;
  block.queue = request.opcode == Opcode::kWait ? static_cast<uint32_t>(request.completion_queue)
                                                : static_cast<uint32_t>(request.target);
  block.enabled = request.index;
  block.region_key = request.region_key;
  const bool bind = request.opcode == Opcode::kBind;
  block.remote_address = bind ? request.address : request.remote_address;
  block.operand = bind ? request.length : request.operand;
  block.swap = bind ? request.address : request.swap;
  if (!request.entries.empty()) block.entry = request.entries.front();
  return block;
}

std::optional<FieldPlace> field_place_of(Opcode opcode, Field field) {
  if (!has_field(opcode, field)) return {};
  return place_of(field);
}

}  // namespace memsluice::nic
