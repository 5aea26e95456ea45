-- Tells crawlhealth once a minute what a dispatcher decided. Counts live in a shared dictionary: they outlive reloads,
-- and a summary is kept, with its key, until it was taken, so that it counts once.

local _M = {}

local KEPT = 60 -- summaries that wait for an exporter that is away; then the oldest is given up
local COUNT, WAITING, NUMBER = "count\31", "waiting\31", "number"
local settings

-- What crawlhealth.conf gives: host and port of the exporter, token (of the tenant), and perhaps tls, every (seconds).
function _M.configure(given)
    settings = given
end

-- The first line of a file: to be called in init_by_lua, while nginx may still read what only root may.
function _M.secret(path)
    local file = assert(io.open(path))
    local line = file:read("*l")
    file:close()
    return line
end

-- Count one visit. `bot` is crawlhealth's name of it, `target` a name of its configuration, `decision` one of sent,
-- stayed, over_quota and target_down. Call it in log_by_lua; without a bot or a decision it does nothing.
function _M.note(domain, bot, target, decision)
    if bot == nil or bot == "" or decision == nil or decision == "" then
        return
    end
    local key = COUNT .. table.concat({ domain, bot, target or "", decision }, "\31")
    local _, problem = ngx.shared.crawlhealth:incr(key, 1, 0)
    if problem then
        ngx.log(ngx.ERR, "crawlhealth: a decision is not counted: ", problem)
    end
end

local function quoted(text)
    return '"' .. text:gsub('[%c"\\]', function(letter)
        return string.format("\\u%04x", letter:byte())
    end) .. '"'
end

-- Move what was counted into a summary that waits.
local function sum_up()
    local shared, items = ngx.shared.crawlhealth, {}
    for _, key in ipairs(shared:get_keys(0)) do
        local domain, bot, target, decision = key:match("^count\31(.-)\31(.-)\31(.-)\31(.*)$")
        local count = domain and shared:get(key) or 0
        if count > 0 then
            shared:incr(key, -count)
            items[#items + 1] = string.format(
                '{"domain":%s,"bot":%s,"target":%s,"decision":%s,"count":%d,"at":%.3f}',
                quoted(domain), quoted(bot), quoted(target), quoted(decision), count, ngx.now())
        end
    end
    if #items > 0 then
        local number = shared:incr(NUMBER, 1, 0)
        local key = string.format("%s%012d\31%s-%d-%.3f", WAITING, number, settings.name, number, ngx.now())
        local kept, problem = shared:safe_set(key, "[" .. table.concat(items, ",") .. "]")
        if not kept then
            ngx.log(ngx.ERR, "crawlhealth: a summary is lost, lua_shared_dict is too small: ", problem)
        end
    end
end

-- Post one summary; the status of the answer and its text, or nil and the problem.
local function post(body, key)
    local socket = ngx.socket.tcp()
    socket:settimeout(5000)
    local connected, problem = socket:connect(settings.host, settings.port)
    if connected and settings.tls then
        connected, problem = socket:sslhandshake(nil, settings.host, true)
    end
    if not connected then
        return nil, problem
    end
    socket:send({
        "POST /api/v1/dispatches HTTP/1.0\r\n",
        "Host: ", settings.host, "\r\n",
        "Authorization: Bearer ", settings.token, "\r\n",
        "Content-Type: application/json\r\n",
        "Idempotency-Key: ", key, "\r\n",
        "Content-Length: ", tostring(#body), "\r\n\r\n",
        body,
    })
    local answer, broken = socket:receive("*a")
    socket:close()
    local status = answer and answer:match("^HTTP/1%.%d (%d%d%d)")
    if not status then
        return nil, broken or "no answer"
    end
    return tonumber(status), answer:match("\r\n\r\n(.*)$") or ""
end

local LATER = { [401] = true, [408] = true, [429] = true, [503] = true } -- whatever is wrong may be mended

-- Sum up, and send what waits, the oldest first.
function _M.flush()
    sum_up()
    local shared, waiting = ngx.shared.crawlhealth, {}
    for _, key in ipairs(shared:get_keys(0)) do
        if key:sub(1, #WAITING) == WAITING then
            waiting[#waiting + 1] = key
        end
    end
    table.sort(waiting)
    for place, key in ipairs(waiting) do
        local status, said = post(shared:get(key), key:match("\31([^\31]*)$"))
        if status == nil or LATER[status] then
            ngx.log(ngx.WARN, "crawlhealth: a summary waits: ", status or "", " ", said)
            if #waiting - place >= KEPT then
                shared:delete(key)
                ngx.log(ngx.ERR, "crawlhealth: a summary is given up: the exporter was away for too long")
            else
                return
            end
        else
            shared:delete(key)
            if status ~= 200 or not said:find('"rejected_items": ?0') then
                ngx.log(ngx.ERR, "crawlhealth: not everything was taken: ", status, " ", said:sub(1, 500))
            end
        end
    end
end

-- Begin to send: to be called in init_worker_by_lua. One worker does it for all.
function _M.start()
    if ngx.worker.id() == 0 then
        settings.name = string.format("%d-%.3f", ngx.worker.pid(), ngx.now())
        assert(ngx.timer.every(settings.every or 60, _M.flush))
    end
end

return _M
